# mpiexec of HPE's PALS: --env NAME=VALUE; the rest of the environment goes along by itself.
. "$here/.launchers/each_program.sh"
option=--env spelled='--env -env' forwarded=
for_each_program "$@"
