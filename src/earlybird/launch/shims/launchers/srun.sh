# srun of Slurm: --export=LIST.
# Ranks are to call a node what Slurm does, which it says in this variable of each task; a person's own value stays.
export EARLYBIRD_NODE_NAME_IN="${EARLYBIRD_NODE_NAME_IN-SLURMD_NODENAME}"
find_own_variables

# Sets `exports` to what --export is to be where it was $1. ALL brings our variables along; else they are named without
# their values, which may hold the comma that separates items here.
exported() {
  list= named= all=
  separators=$IFS
  IFS=,
  for item in $1; do
    case $item in
      ALL) all=yes list=$list,ALL ;;
      NONE | NIL) ;;
      LD_PRELOAD) named=${LD_PRELOAD-} ;;
      LD_PRELOAD=*) named=${item#*=} ;;
      *) list=$list,$item ;;
    esac
  done
  IFS=$separators
  if [ -n "$all" ]; then
    named=${named:-${LD_PRELOAD-}}
  else
    for variable in $own_variables; do list=$list,$variable; done
  fi
  preload_after "$named"
  list=$list,LD_PRELOAD=$preload
  exports=${list#,}
}

# srun's options end where the program begins, whose own --export is not meant: hence the list of options that take
# no value, or take one only after an equals sign.
slurm() {
  exported "${SLURM_EXPORT_ENV:-ALL}"
  default=--export=$exports
  count=$# state=begin
  while [ "$count" -gt 0 ]; do
    # Of two --export the last counts: a person's own, which then holds ours too.
    [ "$state" != begin ] || { set -- "$@" "$default"; state=option; }
    word=$1
    shift
    count=$((count - 1))
    case $state in
      value) state=option ;;
      export)
        exported "$word"
        word=$exports
        state=option
        ;;
      option)
        case $word in
          --export=*)
            exported "${word#*=}"
            word=--export=$exports
            ;;
          --export) state=export ;;
          --*=* | --contiguous | --disable-status | --exact | --exclusive | --external | --help | --hold | \
            --immediate | --interactive | --kill-on-bad-exit | --label | --multi-prog | --nice | --no-allocate | \
            --no-kill | --overcommit | --overlap | --oversubscribe | --preserve-env | --propagate | --pty | \
            --quiet | --quit-on-interrupt | --reboot | --resv-ports | --send-libs | --share | --spread-job | \
            --stepmgr | --test-only | --unbuffered | --usage | --use-min-nodes | --verbose | --version | \
            --bcast | --compress | --get-user-env | --x11) ;;
          --?*) state=value ;;
          -[hHIjkKlOQsuvVXZ]* | -[A-Za-z]?*) ;;
          -[A-Za-z]) state=value ;;
          *) state=program ;;
        esac
        ;;
      program) [ "$word" != : ] || state=begin ;;
    esac
    set -- "$@" "$word"
  done
  # The shims stay on PATH: what srun starts may be a script that calls mpiexec.
  exec "$real" "$@"
}

slurm "$@"
