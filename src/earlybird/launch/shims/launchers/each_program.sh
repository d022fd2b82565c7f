# Launchers with an option OPTION NAME=VALUE for each program of several, which a lone colon separates.
#
# option      how we write the option
# spelled     how a person may write it: a pattern of `case`
# forwarded   more options, for variables that the launcher would not take along by itself

# Whether the next $1 of the arguments set LD_PRELOAD before a lone colon, which begins another program.
context_preloads() {
  left=$1 before=
  shift
  for word; do
    [ "$left" -gt 0 ] && [ "$word" != : ] || return 1
    left=$((left - 1))
    case $word in
      LD_PRELOAD | LD_PRELOAD=*) is_spelled "$before" && return 0 ;;
      *=LD_PRELOAD=*) is_spelled "${word%%=*}" && return 0 ;;
    esac
    before=$word
  done
  return 1
}

is_spelled() {
  for one in $spelled; do
    [ "$one" != "$1" ] || return 0
  done
  return 1
}

for_each_program() {
  preload_after "${LD_PRELOAD-}"
  default=$preload
  count=$# before= begins=yes
  while :; do
    # Of two for one variable the first counts (Open MPI), so there must be only one.
    if [ -n "$begins" ]; then
      if context_preloads "$count" "$@"; then
        set -- "$@" $forwarded
      else
        set -- "$@" "$option" LD_PRELOAD="$default" $forwarded
      fi
    fi
    [ "$count" -gt 0 ] || break
    word=$1
    shift
    count=$((count - 1))
    begins=
    case $word in
      :) begins=yes ;;
      LD_PRELOAD) ! is_spelled "$before" || word=LD_PRELOAD=$default ;;
      LD_PRELOAD=*)
        if is_spelled "$before"; then
          preload_after "${word#*=}"
          word=LD_PRELOAD=$preload
        fi
        ;;
      -*=LD_PRELOAD=*)
        if is_spelled "${word%%=*}"; then
          preload_after "${word#*=LD_PRELOAD=}"
          word=${word%%=*}=LD_PRELOAD=$preload
        fi
        ;;
    esac
    set -- "$@" "$word"
    before=$word
  done
  run "$@"
}
