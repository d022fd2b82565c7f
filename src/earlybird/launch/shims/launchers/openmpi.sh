# mpiexec of Open MPI: -x NAME=VALUE, or -x NAME for what the environment holds; other nodes get nothing else of it.
. "$here/.launchers/each_program.sh"
option=-x spelled='-x --x' forwarded=
find_own_variables
for variable in $own_variables; do
  # Without a value: -x takes that of the environment, whatever characters are in it.
  names_variable "$variable" "$@" || forwarded="$forwarded -x $variable"
done
for_each_program "$@"
