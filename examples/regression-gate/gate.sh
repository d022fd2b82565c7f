#!/bin/sh
# A step of continuous integration: fails if MPI became slower than a baseline that is kept in the repository.
#   gate.sh BASELINE [options of measure]      for example: gate.sh mpich-5.0 --mpi mpich
# Writes gate/run, gate/junit.xml and gate/summary.md. Exit status: that of `earlybird compare`.
set -u
baseline=${1:?give the name of a baseline, see: earlybird baseline list}
shift

[ -f "baselines/$baseline.json" ] || { echo "there is no baselines/$baseline.json" >&2; exit 2; }
rm -rf gate
mkdir gate
earlybird measure pingpong --launches 10 --quiet "$@" -o gate/run > /dev/null || exit 2
earlybird compare --baseline "$baseline" gate/run --format junit > gate/junit.xml 2> /dev/null
earlybird compare --baseline "$baseline" gate/run --format markdown > gate/summary.md
status=$?
cat gate/summary.md
exit "$status"
