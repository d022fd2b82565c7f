#!/bin/sh
# Stands first on PATH inside `earlybird exec`, under the names of MPI launchers: calls the launcher it is named
# after and has it preload libearlybird in the ranks, and nowhere else.
#
# EARLYBIRD_EXEC_LIBRARY   what to preload; unset: the launcher is called as it is
# EARLYBIRD_EXEC_FAMILY    mpich, intel or openmpi: how the mpiexec in EARLYBIRD_EXEC_BIN is spoken to
# EARLYBIRD_EXEC_BIN       the folder of that MPI's launchers; one from elsewhere is asked whose it is
# EARLYBIRD_EXEC_LAUNCHER  the path of the launcher, where it was called by its path
set -f
name=${0##*/}
here=${0%/*}
library=${EARLYBIRD_EXEC_LIBRARY-}
real=${EARLYBIRD_EXEC_LAUNCHER-}
unset EARLYBIRD_EXEC_LAUNCHER

# The entries of a list, without this folder and without libearlybird: a shim or an exec around this one may have
# put them there. Blanks separate what is preloaded as colons do.
without_ours() {
  kept=
  separators=$IFS
  IFS=$1
  for entry in $2; do
    case $entry in
      "$here" | */libearlybird.so | '') ;;
      *) kept=$kept:$entry ;;
    esac
  done
  IFS=$separators
  printf %s "${kept#:}"
}

# What ranks preload: a person's own first, because sanitizers refuse to start otherwise.
preload_after() {
  own=$(without_ours ' :' "$1")
  printf %s "${own:+$own:}$library"
}

path=$(without_ours : "$PATH")
if [ -z "$real" ]; then
  real=$(PATH=$path; command -v "$name") || {
    echo "earlybird: $name is not on PATH; load the site's module, or give the path of its mpicc with --mpi" >&2
    exit 127
  }
fi
inherited=$(without_ours ' :' "${LD_PRELOAD-}")
if [ -n "$inherited" ]; then export LD_PRELOAD="$inherited"; else unset LD_PRELOAD; fi
[ -n "$library" ] || exec env PATH="$path" "$real" "$@"

case $name in
  srun) family=srun ;;
  orterun | prterun | *.openmpi) family=openmpi ;;
  *.hydra | *.mpich) family=mpich ;;
  *)
    family=${EARLYBIRD_EXEC_FAMILY-}
    if [ "${real%/*}" != "${EARLYBIRD_EXEC_BIN-}" ]; then
      # Hydra first: it tells how it was configured, which may name any other product.
      case $("$real" --version 2>&1 < /dev/null) in
        *HYDRA* | *'Intel(R) MPI'*) family=mpich ;;
        *[Oo]pen*MPI* | *OpenRTE* | *PRRTE* | *prte*) family=openmpi ;;
        *) family= ;;
      esac
    fi
    ;;
esac

# Whether a variable is named among the words: then the person has said what ranks get.
names_variable() {
  wanted=$1
  shift
  for word; do
    case $word in "$wanted" | "$wanted"=*) return 0 ;; esac
  done
  return 1
}

own_variables=$(env | sed -n 's/^\(EARLYBIRD_[A-Za-z0-9_]*\)=.*/\1/p' | grep -v '^EARLYBIRD_EXEC_')

# Whether the next $1 of the words name LD_PRELOAD after -x before a lone colon, which begins another program.
context_preloads() {
  left=$1 before=
  shift
  for word; do
    [ "$left" -gt 0 ] && [ "$word" != : ] || return 1
    left=$((left - 1))
    case $before/$word in -x/LD_PRELOAD | -x/LD_PRELOAD=* | --x/LD_PRELOAD | --x/LD_PRELOAD=*) return 0 ;; esac
    before=$word
  done
  return 1
}

# Without this folder on PATH: mpiexec may itself call srun, to start its daemons.
run() {
  export PATH="$path"
  exec "$real" "$@"
}

hydra() {
  preload=$(preload_after "${LD_PRELOAD-}")
  count=$# before= last=
  while [ "$count" -gt 0 ]; do
    word=$1
    shift
    count=$((count - 1))
    case $before/$last in
      -genv/LD_PRELOAD | --genv/LD_PRELOAD | -env/LD_PRELOAD | --env/LD_PRELOAD) word=$(preload_after "$word") ;;
    esac
    set -- "$@" "$word"
    before=$last last=$word
  done
  for variable in $own_variables; do
    names_variable "$variable" "$@" && continue
    eval "value=\$$variable"
    set -- -genv "$variable" "$value" "$@"
  done
  # Of two -genv for one variable the last counts: a person's own, which now holds ours too.
  run -genv LD_PRELOAD "$preload" "$@"
}

openmpi() {
  preload=$(preload_after "${LD_PRELOAD-}")
  forwarded=
  for variable in $own_variables; do
    # Without a value: -x takes that of the environment, whatever characters are in it.
    names_variable "$variable" "$@" || forwarded="$forwarded -x $variable"
  done
  count=$# before= begins=yes
  while :; do
    # Of two -x for one variable the first counts, so there must be only one.
    if [ -n "$begins" ]; then
      if context_preloads "$count" "$@"; then
        set -- "$@" $forwarded
      else
        set -- "$@" -x LD_PRELOAD="$preload" $forwarded
      fi
    fi
    [ "$count" -gt 0 ] || break
    word=$1
    shift
    count=$((count - 1))
    begins=
    case $before/$word in
      */:) begins=yes ;;
      -x/LD_PRELOAD | --x/LD_PRELOAD) word=LD_PRELOAD=$preload ;;
      -x/LD_PRELOAD=* | --x/LD_PRELOAD=*) word=LD_PRELOAD=$(preload_after "${word#*=}") ;;
    esac
    set -- "$@" "$word"
    before=$word
  done
  run "$@"
}

# What --export is to be where it was $1. ALL brings our variables along; else they are named without their values,
# which may hold the comma that separates items here.
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
  list=$list,LD_PRELOAD=$(preload_after "$named")
  printf %s "${list#,}"
}

# srun's options end where the program begins, whose own --export is not meant: hence the list of options that take
# no value, or take one only after an equals sign.
slurm() {
  default=--export=$(exported "${SLURM_EXPORT_ENV:-ALL}")
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
        word=$(exported "$word")
        state=option
        ;;
      option)
        case $word in
          --export=*) word=--export=$(exported "${word#*=}") ;;
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

case $family in
  srun) slurm "$@" ;;
  mpich | intel) hydra "$@" ;;
  openmpi) openmpi "$@" ;;
  *)
    echo "earlybird: $real is of no launcher known here (MPICH, Open MPI, Intel MPI, Slurm): it runs the MPI alone" >&2
    run "$@"
    ;;
esac
