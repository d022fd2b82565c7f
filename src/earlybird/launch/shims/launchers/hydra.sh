# mpiexec of MPICH and Intel MPI: -genv NAME VALUE for all ranks, -env NAME VALUE for those of one program.
find_own_variables
preload_after "${LD_PRELOAD-}"
default=$preload
count=$# before= last=
while [ "$count" -gt 0 ]; do
  word=$1
  shift
  count=$((count - 1))
  case $before/$last in
    -genv/LD_PRELOAD | --genv/LD_PRELOAD | -env/LD_PRELOAD | --env/LD_PRELOAD)
      preload_after "$word"
      word=$preload
      ;;
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
run -genv LD_PRELOAD "$default" "$@"
