# aprun of Cray's ALPS and HPE's PALS: -e NAME=VALUE, once for all programs; the rest of the environment goes along.
preload_after "${LD_PRELOAD-}"
default=$preload
count=$# before= stated=
while [ "$count" -gt 0 ]; do
  word=$1
  shift
  count=$((count - 1))
  case $before/$word in
    -e/LD_PRELOAD=* | --environment-override/LD_PRELOAD=*)
      preload_after "${word#*=}"
      word=LD_PRELOAD=$preload stated=yes
      ;;
    */-eLD_PRELOAD=* | */--environment-override=LD_PRELOAD=*)
      preload_after "${word#*LD_PRELOAD=}"
      word=${word%%LD_PRELOAD=*}LD_PRELOAD=$preload stated=yes
      ;;
  esac
  set -- "$@" "$word"
  before=$word
done
[ -n "$stated" ] || set -- -e LD_PRELOAD="$default" "$@"
run "$@"
