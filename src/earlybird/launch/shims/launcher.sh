#!/bin/sh
# Stands first on PATH inside `earlybird exec`, under the names of launchers: calls the launcher it is named after and
# has it preload libearlybird in the ranks, and nowhere else. How each is asked for that is in a file of its own,
# launchers/*.sh, which begins with this one's functions.
#
# EARLYBIRD_EXEC_LIBRARY   what to preload, with a colon between two; unset: the launcher is called as it is
# EARLYBIRD_EXEC_FAMILY    mpich, intel or openmpi: how the mpiexec in EARLYBIRD_EXEC_BIN is spoken to
# EARLYBIRD_EXEC_BIN       the folder of that MPI's launchers; one from elsewhere is asked whose it is
# EARLYBIRD_EXEC_LAUNCHER  the path of the launcher, where it was called by its path
# EARLYBIRD_EXEC_LIBMPI    the MPI's own library, where programs that load it while they run need it preloaded too
# EARLYBIRD_EXEC_LATE      yes: the ranks are such programs; else the arguments decide
set -f
name=${0##*/}
here=${0%/*}
# EARLYBIRD_OFF keeps the library out of the ranks: it could not even be inert in a program of the other kind of MPI.
case ${EARLYBIRD_OFF-} in
  '' | 0) library=${EARLYBIRD_EXEC_LIBRARY-} ;;
  *) library= ;;
esac
libmpi=${EARLYBIRD_EXEC_LIBMPI-}
late=${EARLYBIRD_EXEC_LATE-}
real=${EARLYBIRD_EXEC_LAUNCHER-}
unset EARLYBIRD_EXEC_LAUNCHER EARLYBIRD_EXEC_LATE

# Sets `kept` to the entries of a list without this folder and without libearlybird: a shim or an exec around this one
# may have put them there. Blanks separate what is preloaded as colons do. Sets `behind` where the MPI's library is
# among them: it must come after ours. ($(...) would be a process for each call.)
without_ours() {
  kept='' behind=
  separators=$IFS
  IFS=$1
  for entry in $2; do
    case $entry in
      '' | "$here" | */libearlybird.so | */libearlybird_abi.so) ;;
      */libearlybird_recorder.so | */libearlybird_recorder_abi.so) ;;
      "$libmpi") behind=:$libmpi ;;
      *) kept=$kept:$entry ;;
    esac
  done
  IFS=$separators
  kept=${kept#:}
}

# Sets `preload` to what ranks preload: a person's own first, because sanitizers refuse to start otherwise.
preload_after() {
  without_ours ' :' "$1"
  [ -z "$late" ] || behind=:$libmpi
  preload=${kept:+$kept:}$library$behind
}

without_ours : "$PATH"
path=$kept
if [ -z "$real" ]; then
  real=$(PATH=$path; command -v "$name") || {
    echo "earlybird: $name is not on PATH; load the site's module, or give the path of its mpicc with --mpi" >&2
    exit 127
  }
fi
without_ours ' :' "${LD_PRELOAD-}"
kept=$kept$behind
kept=${kept#:}
if [ -n "$kept" ]; then export LD_PRELOAD="$kept"; else unset LD_PRELOAD; fi
if [ -z "$library" ]; then
  export PATH="$path"
  exec "$real" "$@"
fi

# Whether an argument is a Python: what its name is stands for, because scripts are not read here.
[ -n "$late" ] || for word; do
  case ${word##*/} in
    python | python[0-9]* | pypy*) late=yes ;;
  esac
done
[ -n "$libmpi" ] || late=

# Whose launcher it is: the file in launchers/ that speaks to it.
case $name in
  srun | jsrun | aprun | flux | ibrun) launcher=$name ;;
  palsrun) launcher=pals ;;
  orterun | prterun | *.openmpi) launcher=openmpi ;;
  *.hydra | *.mpich) launcher=hydra ;;
  *)
    case ${EARLYBIRD_EXEC_FAMILY-} in
      mpich | intel) launcher=hydra ;;
      *) launcher=${EARLYBIRD_EXEC_FAMILY-} ;;
    esac
    if [ "${real%/*}" != "${EARLYBIRD_EXEC_BIN-}" ]; then
      # Hydra first: it says how it was configured, which may name any other product.
      case $("$real" --version 2>&1 < /dev/null) in
        *HYDRA* | *'Intel(R) MPI'*) launcher=hydra ;;
        *[Oo]pen*MPI* | *OpenRTE* | *PRRTE* | *prte*) launcher=openmpi ;;
        *) case $real in */pals/*) launcher=pals ;; *) launcher= ;; esac ;;
      esac
    fi
    ;;
esac

# Whether a variable is named among the arguments: then the person has said what ranks get.
names_variable() {
  wanted=$1
  shift
  for word; do
    case $word in "$wanted" | "$wanted"=*) return 0 ;; esac
  done
  return 1
}

# Sets `own_variables` to the names of ours that ranks on other nodes are to get. A line of another variable's value
# may look like one of ours.
find_own_variables() {
  own_variables=
  for variable in $(env | sed -n '/^EARLYBIRD_EXEC_/d; s/^\(EARLYBIRD_[A-Za-z0-9_]*\)=.*/\1/p'); do
    eval "[ -z \"\${$variable+set}\" ]" || own_variables="$own_variables $variable"
  done
}

# Without this folder on PATH: a launcher may itself call another, srun say, to start its daemons. What Slurm calls the
# node of this process is passed to all ranks, on whichever node.
run() {
  [ "${EARLYBIRD_NODE_NAME_IN-}" != SLURMD_NODENAME ] || unset EARLYBIRD_NODE_NAME_IN
  export PATH="$path"
  exec "$real" "$@"
}

# For what cannot be done here: how a person does it with any launcher.
run_alone() {
  echo "earlybird: $1: it runs the MPI alone; to preload libearlybird in the ranks, write" \
    "\`$name ... env LD_PRELOAD=$library PROGRAM\`" >&2
  shift
  run "$@"
}

if [ -n "$launcher" ]; then
  . "$here/.launchers/$launcher.sh"
else
  run_alone "$real is of no launcher known here (MPICH, Open MPI, Intel MPI, Slurm, Flux, PALS)" "$@"
fi
