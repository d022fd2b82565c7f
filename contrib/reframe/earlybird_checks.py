"""ReFrame checks: what `earlybird measure` measures becomes performance variables, one for each point.

    reframe -c contrib/reframe/earlybird_checks.py -r
    reframe -c contrib/reframe/earlybird_checks.py -r -n EarlybirdPingpong -S launches=10 -S mpi=openmpi
    reframe -c contrib/reframe/earlybird_checks.py -r -S baseline=mpich-5.0 -S baselines=baselines
    reframe -c contrib/reframe/earlybird_checks.py -r -n EarlybirdCheck -S rank_launcher=srun

With a baseline (`earlybird baseline save`), a check fails if `earlybird compare` finds a slower point. Set
references of ReFrame's own in a subclass; the names of the variables are in the performance report. Earlybird
starts the ranks, so a check runs without the launcher of the partition; within an allocation, add what
`earlybird measure` needs there, such as -S rank_launcher=srun.

EarlybirdCheck fails if `earlybird check` finds nodes to leave out, or cannot decide; checked/ok.txt in its output
folder has the others, for mpiexec -f.
"""

import json
import shlex
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.backends import getlauncher
from reframe.core.builtins import run_after, run_before, sanity_function, variable

# What distinguishes the points of a suite, in the order of the name.
NAMED = (
    "operation", "topology", "skew", "level", "map_by", "method", "threads", "competitors", "ranks",
    "size_bytes",
)  # fmt: skip


class EarlybirdMeasurement(rfm.RunOnlyRegressionTest):
    """`earlybird measure SUITE`, and with a baseline `earlybird compare`."""

    suite = variable(str)
    sizes = variable(str)
    options = variable(typ.List[str], value=[])
    rank_launcher = variable(str, value="")
    srun = variable(str, value="")  # arguments for rank_launcher=srun, such as --mpi=pmix
    mpi = variable(str, value="")
    launches = variable(int, value=5)
    stall_limit = variable(str, value="10min")  # slow calls of many ranks take longer than the usual minute
    baseline = variable(str, value="")
    baselines = variable(str, value="baselines")

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "earlybird"
    keep_files = ["run"]

    @run_before("run")
    def set_command(self):
        options = {
            "--sizes": self.sizes, "--mpi": self.mpi, "--launcher": self.rank_launcher, "--srun": self.srun,
        }  # fmt: skip
        given = [one for name, value in options.items() if value for one in (name, shlex.quote(value))]
        self.executable_opts = [
            "measure", self.suite, *given, *map(shlex.quote, self.options),
            "--launches", str(self.launches), "--stall-limit", shlex.quote(self.stall_limit),
            "--quiet", "--json", "-o", "run",
        ]  # fmt: skip
        if self.baseline:
            folder = Path(self.baselines).absolute()  # the job runs in the stage directory
            names = f"--baseline {shlex.quote(self.baseline)} --folder {shlex.quote(str(folder))}"
            compare = f"earlybird compare {names} run > comparison.txt"
            self.postrun_cmds = [compare, 'echo "$?" > compared.txt']
            self.keep_files = ["run", "comparison.txt"]

    @run_after("setup")
    def start_without_launcher(self):
        self.job.launcher = getlauncher("local")()

    @sanity_function
    def is_measured(self):
        points = sn.count(sn.defer(self._points()))
        measured = sn.assert_gt(points, 0, msg="earlybird measure printed no points; see the job's stderr")
        return sn.all([measured, self._is_as_fast()])

    @sn.deferrable
    def _is_as_fast(self):
        if not self.baseline:
            return True
        status = self._text("compared.txt").strip()
        printed = self._text("comparison.txt")
        return sn.assert_eq(status, "0", msg=f"earlybird compare ended with status {status}:\n{printed}")

    @run_before("performance")
    def set_variables(self):
        self.perf_variables = {
            _name(point): sn.make_performance_function(_microseconds, "us", point["time_s"])
            for point in self._points()
        }

    def _points(self):
        """What `earlybird measure --json` printed; [] if it failed, or did not run (--dry-run)."""
        try:
            return json.loads(self._text(str(self.stdout)))["points"]
        except (OSError, ValueError):
            return []

    def _text(self, name):
        return (Path(self.stagedir) / name).read_text()


def _name(point):
    """Such as `intra_socket_8` or `bcast_core_default_2_8`: without what the point does not have."""
    name = "_".join(str(point[name]) for name in NAMED if point.get(name) not in (None, ""))
    return name.replace(":", "_")  # of a segment; ReFrame would take what follows it for the name


def _microseconds(time_s):
    return 1e6 * time_s


@rfm.simple_test
class EarlybirdPingpong(EarlybirdMeasurement):
    """Half the round trip of messages between two ranks, on every level."""

    suite = "pingpong"
    sizes = "8,8KiB,64KiB,1MiB"


@rfm.simple_test
class EarlybirdAllreduce(EarlybirdMeasurement):
    """The MPI's own allreduce, by the number of ranks."""

    suite = "collective"
    sizes = "8,8KiB,1MiB"
    options = ["--op", "allreduce", "--algorithm", "default"]


@rfm.simple_test
class EarlybirdCheck(rfm.RunOnlyRegressionTest):
    """`earlybird check`: every node and link of the job is as fast as the others."""

    rank_launcher = variable(str, value="")
    srun = variable(str, value="")  # arguments for rank_launcher=srun, such as --mpi=pmix
    hosts = variable(str, value="")
    mpi = variable(str, value="")
    expect = variable(str, value="")  # an earlier check, or a figure such as bandwidth=11GB/s

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "earlybird"
    keep_files = ["checked"]

    @run_after("init")
    def need_nodes(self):
        self.skip_if(
            not self.rank_launcher and not self.hosts,
            "a check compares nodes; give -S rank_launcher=srun, or -S hosts=nodes.txt",
        )

    @run_after("setup")
    def start_without_launcher(self):
        self.job.launcher = getlauncher("local")()

    @run_before("run")
    def set_command(self):
        options = {
            "--launcher": self.rank_launcher, "--hosts": self.hosts, "--srun": self.srun, "--mpi": self.mpi,
            "--expect": self.expect,
        }  # fmt: skip
        given = [one for name, value in options.items() if value for one in (name, shlex.quote(value))]
        self.executable_opts = ["check", *given, "--quiet", "-o", "checked"]
        self.postrun_cmds = ['echo "$?" > status.txt']

    @sanity_function
    def is_alike(self):
        return self._has_verdict()

    @sn.deferrable
    def _has_verdict(self):
        status = (Path(self.stagedir) / "status.txt").read_text().strip()
        printed = (Path(self.stagedir) / str(self.stdout)).read_text()
        if status == "1":
            printed += "\nthe nodes that are left are in checked/ok.txt"
        return sn.assert_eq(status, "0", msg=f"earlybird check ended with status {status}:\n{printed}")
