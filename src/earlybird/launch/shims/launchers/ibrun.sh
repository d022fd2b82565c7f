# ibrun of TACC: it takes the environment to the ranks, but runs as a script with daemons of its own, so env sets the
# variable right before the program. Its options are -n, -np and -o with a number.
count=$# state=option
for word; do
  case $state/$word in
    option/-n | option/-np | option/-o) state=value ;;
    option/-*) run_alone "$word is no option of ibrun known here (-n, -np, -o)" "$@" ;;
    value/*) state=option ;;
    *) break ;;
  esac
done
preload_after "${LD_PRELOAD-}"
state=option
while [ "$count" -gt 0 ]; do
  word=$1
  shift
  count=$((count - 1))
  case $state/$word in
    option/-*) state=value ;;
    value/*) state=option ;;
    option/*)
      state=program
      set -- "$@" env LD_PRELOAD="$preload"
      ;;
  esac
  set -- "$@" "$word"
done
run "$@"
