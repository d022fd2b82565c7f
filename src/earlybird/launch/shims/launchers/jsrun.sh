# jsrun of IBM's JSM: -E NAME=VALUE; the rest of the environment goes along by itself.
. "$here/.launchers/each_program.sh"
option=-E spelled='-E --env' forwarded=
for_each_program "$@"
