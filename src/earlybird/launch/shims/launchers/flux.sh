# flux run, submit and bulksubmit: --env=NAME=VALUE, in the order given; the rest of the environment goes along by
# itself. Other subcommands start no ranks. The shims stay on PATH: what flux starts may be a script that calls one.
preload_after "${LD_PRELOAD-}"
default=$preload
count=$# before= begin=
while [ "$count" -gt 0 ]; do
  word=$1
  shift
  count=$((count - 1))
  if [ -z "$begin" ]; then
    case $word in
      -* | mini) ;;
      run | submit | bulksubmit) begin=yes ;;
      *) begin=never ;;
    esac
    set -- "$@" "$word"
    # A person's rules come after ours.
    [ "$begin" != yes ] || set -- "$@" --env=LD_PRELOAD="$default"
    continue
  fi
  case $begin/$before/$word in
    yes/*/--env=LD_PRELOAD=*)
      preload_after "${word#--env=LD_PRELOAD=}"
      word=--env=LD_PRELOAD=$preload
      ;;
    yes/--env/LD_PRELOAD=*)
      preload_after "${word#LD_PRELOAD=}"
      word=LD_PRELOAD=$preload
      ;;
  esac
  set -- "$@" "$word"
  before=$word
done
exec "$real" "$@"
