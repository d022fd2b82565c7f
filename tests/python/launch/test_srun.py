"""Slurm's srun: how a layout becomes its arguments, and a launch through a stand-in for it."""

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.layout import Layout, parse_layout
from earlybird.launch import slurm
from earlybird.launch.launcher import Launched, Request
from earlybird.launch.mpiexec import Invocation
from earlybird.launch.slurm import SrunLauncher, allocated_hosts, num_allocated_nodes
from earlybird.launch.srun_arguments import parse_srun_arguments
from earlybird.machine import hardware
from earlybird.machine.flavours import Flavour, find_flavour
from earlybird.toolchain.build import require_built

# Takes the arguments that srun is given, and lets mpiexec start as many ranks.
STAND_IN = """#!/bin/sh
case " $* " in
  *" --mpi=list "*) printf 'MPI plugin types are...\\n\\tpmix\\n\\tnone\\n\\tpmi2\\n'; exit 0;;
  *" --test-only "*) exit 0;;
esac
printf '%s ' "$@" > "$(dirname "$0")/arguments"
while [ $# -gt 0 ]; do
  case "$1" in
    -n) ranks=$2; shift 2;;
    -N) shift 2;;
    --*) shift;;
    *) break;;
  esac
done
exec {mpiexec} -n "$ranks" sh -c 'SLURM_PROCID=$PMI_RANK exec "$@"' rank "$@"
"""


@pytest.fixture
def srun(tmp_path, monkeypatch):
    """Put a stand-in for srun on PATH; returns its folder."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def make(mpiexec):
        (folder / "srun").write_text(STAND_IN.format(mpiexec=mpiexec))
        (folder / "srun").chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        return folder

    return make


@pytest.fixture(autouse=True)
def outside_an_allocation(monkeypatch):
    for name in ("SLURM_JOB_ID", "SLURM_NNODES", "SLURM_MPI_TYPE"):
        monkeypatch.delenv(name, raising=False)
    slurm._first_loaded.cache_clear()
    # Those of the MPI, which is not there.
    monkeypatch.setattr(slurm, "_libraries", lambda mpi: [])


def launcher(family="mpich", threads=1):
    flavour = Flavour(family, family, "1", Path("/mpi/bin/mpicc"), Path("/mpi/bin/mpiexec"))
    return SrunLauncher(flavour, threads)


def output(monkeypatch, folder, layout, family="mpich", threads=1, cores=((0, 1),), given=None) -> Invocation:
    """The arguments of srun for `layout` on nodes whose sockets have `cores`, with those of a user."""
    caught: list[Invocation] = []
    launched = Launched({"placement": []}, [], None)
    monkeypatch.setattr(slurm, "run_kernel", lambda *arguments: caught.append(arguments[1]) or launched)
    monkeypatch.setattr(hardware, "cores_by_socket", lambda: [list(socket) for socket in cores])
    with_given = replace(launcher(family, threads), srun=parse_srun_arguments(given))
    with_given.launch(Request("0", "pingpong", [], layout), folder, lambda *heard: None)
    return caught[0]


@pytest.mark.parametrize(
    ("layout", "map_by", "per_node", "distribution"),
    [
        ("2x1x4", "core", 4, "block"),
        ("2x2x2", "core", 4, "block"),
        ("2x2x2", "socket", 4, "block"),
        ("1x2x1", "core", 2, "block"),
        ("4x1x2", "node", 2, "cyclic"),
        ("1x1x1", "core", 1, "block"),
    ],
)
def test_a_layout_becomes_a_distribution(monkeypatch, tmp_path, layout, map_by, per_node, distribution):
    asked = parse_layout(layout, map_by)
    arguments = output(monkeypatch, tmp_path, asked).before_program
    assert arguments[:5] == ("srun", "-n", str(asked.num_ranks), "-N", str(asked.num_nodes))
    # Else Slurm fills the first node before it begins the second.
    assert f"--ntasks-per-node={per_node}" in arguments
    assert f"--distribution={distribution}" in arguments


def test_each_mpi_gets_the_plugin_it_speaks(monkeypatch, tmp_path):
    pair = parse_layout("1x1x2")
    assert "--mpi=pmix" in output(monkeypatch, tmp_path, pair, "openmpi").before_program
    assert "--mpi=pmi2" in output(monkeypatch, tmp_path, pair, "mpich").before_program
    intel = output(monkeypatch, tmp_path, pair, "intel")
    assert "--mpi=pmi2" in intel.before_program
    assert intel.env["I_MPI_PIN"] == "0"  # it would bind once more


def test_more_ranks_than_cores_are_allowed_and_yield(monkeypatch, tmp_path):
    few = output(monkeypatch, tmp_path, parse_layout("1x1x2"))
    assert "--overcommit" not in few.before_program and few.preferred == {}
    many = output(monkeypatch, tmp_path, parse_layout("2x1x3"))
    assert "--overcommit" in many.before_program
    assert many.preferred == {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
    assert "--overcommit" in output(monkeypatch, tmp_path, parse_layout("1x1x2"), threads=2).before_program


def test_a_step_shares_its_allocation_and_an_allocation_shares_nothing(monkeypatch, tmp_path):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    arguments = output(monkeypatch, tmp_path, parse_layout("1x1x2")).before_program
    assert "--exclusive" in arguments and "--overlap" not in arguments
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    arguments = output(monkeypatch, tmp_path, parse_layout("1x1x2")).before_program
    assert "--overlap" in arguments and "--exclusive" not in arguments


def test_what_the_allocation_says_of_tasks_does_not_reach_srun(monkeypatch, tmp_path):
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "8")
    monkeypatch.setenv("SLURM_EXCLUSIVE", "1")  # srun refuses it next to --overlap
    arguments = output(monkeypatch, tmp_path, parse_layout("1x1x2")).before_program
    assert arguments[:6] == ("env", "-u", "SLURM_CPUS_PER_TASK", "-u", "SLURM_EXCLUSIVE", "srun")


def test_threads_are_passed_to_the_program(monkeypatch, tmp_path):
    assert output(monkeypatch, tmp_path, parse_layout("1x1x1"), threads=2).preferred == {
        "OMP_NUM_THREADS": "2"
    }


# Package and core of CPUs 0-7: two sockets whose cores have two hardware threads each, as Linux numbers them.
TOPOLOGY = {cpu: (cpu % 4 // 2 * 5, cpu % 2) for cpu in range(8)}


def cpus_bound(folder, layout, threads, rank, allowed) -> str:
    """The --cpu-list that a rank's script gives taskset on a node of TOPOLOGY with these CPUs allowed."""
    for cpu, (package, core) in TOPOLOGY.items():
        topology = folder / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True, exist_ok=True)
        (topology / "physical_package_id").write_text(f"{package}\n")
        (topology / "core_id").write_text(f"{core}\n")
    (folder / "status").write_text(f"Name:\tsh\nCpus_allowed_list:\t{allowed}\nThreads:\t1\n")
    script = slurm._bind_script(layout, threads, folder)
    text = script.read_text().replace("/sys/devices/system/cpu", str(folder))
    script.write_text(text.replace("/proc/self/status", str(folder / "status")))
    stand_in = folder / "taskset"
    stand_in.write_text('#!/bin/sh\nshift; cpus=$1; shift; echo "$cpus" "$@"\n')
    stand_in.chmod(0o755)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "SLURM_PROCID": str(rank)}
    result = subprocess.run(
        ["/bin/sh", script, "kernel", "a b"], env=environment, capture_output=True, text=True, timeout=60
    )
    if result.returncode != 0:
        return result.stderr.strip()
    assert result.stdout.strip().endswith(" kernel a b")
    return result.stdout.split()[0]


@pytest.mark.parametrize(
    ("layout", "map_by", "threads", "allowed", "expected"),
    [
        # One rank per socket: filling a socket first would put both on one.
        ("1x2x1", "core", 1, "0-7", ["0", "2"]),
        ("1x2x2", "core", 1, "0-7", ["0", "1", "2", "3"]),
        ("1x2x2", "socket", 1, "0-7", ["0", "2", "1", "3"]),
        ("2x1x2", "core", 1, "0-7", ["0", "1", "0", "1"]),
        ("2x1x2", "node", 1, "0-7", ["0", "0", "1", "1"]),
        ("1x1x3", "core", 1, "0-7", ["0", "1", "0"]),  # more ranks than cores: in turn
        ("1x2x1", "core", 2, "0-7", ["0,1", "2,3"]),
        ("1x1x2", "core", 2, "0-7", ["0,1", "0,1"]),
        ("1x1x2", "core", 1, "1,6-7", ["1", "1"]),  # what Slurm confines a step to
        ("1x2x1", "core", 1, "5,7", ["5", "7"]),
    ],
)
def test_ranks_bind_themselves_to_cores_of_their_socket(tmp_path, layout, map_by, threads, allowed, expected):
    asked = parse_layout(layout, map_by)
    bound = [cpus_bound(tmp_path, asked, threads, rank, allowed) for rank in range(asked.num_ranks)]
    assert bound == expected


def test_a_rank_whose_socket_the_node_does_not_have_is_reported(tmp_path):
    said = cpus_bound(tmp_path, parse_layout("1x2x1"), 1, 1, "0-1")
    assert said.startswith("earlybird kernel: the layout names socket 1, which ")


def test_a_rank_without_a_number_does_not_start(tmp_path):
    said = cpus_bound(tmp_path, parse_layout("1x1x2"), 1, "", "0-1")
    assert said.startswith("earlybird kernel: SLURM_PROCID is '', which is not a rank of this launch")
    assert "\n" not in said


def test_a_layout_that_srun_cannot_place_is_refused(srun):
    srun("none")
    for nodes in ([0, 0, 1], [0, 1, 1, 0]):
        uneven = Layout(np.array(nodes), np.zeros(len(nodes), int), "uneven.csv")
        with pytest.raises(InputError, match=r"uneven\.csv"):
            launcher().check(uneven)
    launcher().check(parse_layout("2x1x2"))


def test_more_nodes_than_allocated_are_refused(srun, monkeypatch):
    srun("none")
    monkeypatch.setenv("SLURM_NNODES", "2")
    launcher().check(parse_layout("2x1x2"))
    with pytest.raises(InputError, match="allocation has 2"):
        launcher().check(parse_layout("3x1x2"))


# Prints the plugins of a Slurm, of which it loads some.
OF_A_SITE = """#!/bin/sh
if [ "$1" = --mpi=list ]; then
{listed}
  exit 0
fi
case $1 in {loaded}) exit 0 ;; esac
echo 'srun: error: MPI: Unable to load any plugin' >&2
exit 1
"""
# As Slurm 22.05 and later print them, and 21.08 and earlier.
NEW = """printf 'MPI plugin types are...\\n\\tpmix\\n\\tnone\\n\\tcray_shasta\\n\\tpmi2\\n'
printf 'specific pmix plugin versions available: pmix_v3,pmix_v4\\n'"""
OLD = "printf 'srun: MPI types are...\\nsrun: pmix_v3\\nsrun: none\\nsrun: pmi2\\n' >&2"
CRAY = ["libmpi_gnu_123.so.12", "libc.so.6"]


@pytest.mark.parametrize(
    ("family", "libraries", "listed", "loaded", "set_by_site", "given", "plugin"),
    [
        ("mpich", [], NEW, "--mpi=*", "", None, "pmi2"),
        ("mpich", ["libpmix.so.2"], NEW, "--mpi=*", "", None, "pmix"),
        ("mpich", ["libpmix.so.2"], NEW, "--mpi=pmi2", "", None, "pmi2"),
        ("mpich", CRAY, NEW, "--mpi=*", "", None, "cray_shasta"),
        ("mpich", CRAY, OLD, "--mpi=*", "", None, "pmi2"),
        ("mpich", [], NEW, "--mpi=*", "pmix", None, "pmi2"),  # which it does not speak
        ("mpich", CRAY, NEW, "--mpi=*", "pmi2", None, "pmi2"),
        ("mpich", [], NEW, "--mpi=*", "", "--mpi=pmix_v4", "pmix_v4"),
        ("openmpi", [], NEW, "--mpi=*", "", None, "pmix"),
        ("openmpi", [], NEW, "--mpi=pmix_v4", "", None, "pmix_v4"),
        ("openmpi", [], NEW, "--mpi=*", "pmix_v3", None, "pmix_v3"),
        ("openmpi", [], OLD, "--mpi=*", "", None, "pmix_v3"),
        ("openmpi", [], NEW, "--mpi=pmi2", "pmi2", None, None),
        ("openmpi", ["libpmi2.so.0"], NEW, "--mpi=pmi2", "", None, "pmi2"),
        ("intel", [], NEW, "--mpi=*", "", None, "pmi2"),
        ("intel", [], NEW, "--mpi=pmix", "", None, "pmix"),
        ("intel", [], NEW, "--mpi=pmi2", "", "--mpi=pmix", None),
    ],
)
def test_the_plugin_is_one_that_the_mpi_speaks_and_slurm_loads(
    srun, monkeypatch, tmp_path, family, libraries, listed, loaded, set_by_site, given, plugin
):
    (srun("none") / "srun").write_text(OF_A_SITE.format(listed=listed, loaded=loaded))
    monkeypatch.setattr(slurm, "_libraries", lambda mpi: libraries)
    if set_by_site:
        monkeypatch.setenv("SLURM_MPI_TYPE", set_by_site)
    pair = parse_layout("1x1x2")
    of_user = replace(launcher(family), srun=parse_srun_arguments(given))
    if plugin is None:
        with pytest.raises(InputError, match=f"--mpi={given[6:]}" if given else r"needs PMIx.*--hosts"):
            of_user.check(pair)
        return
    of_user.check(pair)
    arguments = output(monkeypatch, tmp_path, pair, family, given=given).before_program
    assert [one for one in arguments if one.startswith("--mpi")] == [f"--mpi={plugin}"]


def test_arguments_of_the_user_precede_those_of_the_launch_and_are_recorded(monkeypatch, tmp_path):
    caught = []
    launched = Launched({"placement": []}, [], None)
    monkeypatch.setattr(slurm, "run_kernel", lambda job, *others: caught.append((job, *others)) or launched)
    of_user = replace(launcher(), srun=parse_srun_arguments("--network='a b' -p debug"))
    of_user.launch(Request("0", "pingpong", [], parse_layout("1x1x2")), tmp_path, lambda *heard: None)
    ((job, invocation, *_),) = caught
    assert invocation.before_program[:6] == ("srun", "--network=a b", "-p", "debug", "-n", "2")
    assert job.extra == {"srun": "'--network=a b' -p debug"} and not job.is_one_machine


def test_nodes_have_the_names_that_slurm_knows(monkeypatch, tmp_path):
    sets = output(monkeypatch, tmp_path, parse_layout("2x1x1")).env
    assert sets[slurm.NODE_NAME_IN] == "SLURMD_NODENAME"


def test_nodes_are_those_of_one_component_of_a_heterogeneous_job(srun, monkeypatch):
    folder = srun("none")
    (folder / "scontrol").write_text('#!/bin/sh\necho "$3" | tr , "\\n"\n')
    (folder / "scontrol").chmod(0o755)
    for name, value in {
        "SLURM_HET_SIZE": "2",
        "SLURM_JOB_NUM_NODES_HET_GROUP_0": "1",
        "SLURM_JOB_NUM_NODES_HET_GROUP_1": "3",
        "SLURM_JOB_NODELIST_HET_GROUP_0": "a1",
        "SLURM_JOB_NODELIST_HET_GROUP_1": "b1,b2,b3",
    }.items():
        monkeypatch.setenv(name, value)
    assert num_allocated_nodes() == 1 and allocated_hosts() == ("a1",)
    assert num_allocated_nodes(1) == 3 and allocated_hosts(1) == ("b1", "b2", "b3")
    replace(launcher(), srun=parse_srun_arguments("--het-group=1")).check(parse_layout("3x1x1"))
    with pytest.raises(InputError, match="component of a heterogeneous job has 1"):
        launcher().check(parse_layout("3x1x1"))
    with pytest.raises(InputError, match="components 0 to 1"):
        num_allocated_nodes(2)


@pytest.mark.parametrize("name", ["SLURM_NNODES", "SLURM_HET_SIZE"])
@pytest.mark.parametrize("text", ["two", "2-4", "", "\u00b2", "9" * 5000])
def test_a_number_of_nodes_that_is_none_is_refused(monkeypatch, name, text):
    monkeypatch.setenv(name, text)
    with pytest.raises(InputError, match=f"the variable {name} is "):
        num_allocated_nodes()


def test_nodes_are_those_of_the_job_within_a_step_of_some(monkeypatch):
    monkeypatch.setenv("SLURM_NNODES", "1")
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "4")
    assert num_allocated_nodes() == 4
    with pytest.raises(InputError, match="this job has no components"):
        num_allocated_nodes(1)


def test_a_slurm_that_does_not_answer_is_refused_in_bounded_time(srun, monkeypatch):
    (srun("none") / "srun").write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(slurm, "_ANSWER_LIMIT_S", 0.2)
    with pytest.raises(InputError, match=r"srun --mpi=list did not answer within 0\.2 s"):
        launcher().check(parse_layout("1x1x2"))


@pytest.mark.parametrize("job", [None, "7"])
def test_ranks_that_still_wait_in_the_queue_are_not_called_hung(srun, monkeypatch, tmp_path, job):
    (srun("none") / "srun").write_text("#!/bin/sh\ncase $1 in --mpi=*) ;; *) exec sleep 60 ;; esac\n")
    monkeypatch.setattr("earlybird.launch.job.kernel_path", lambda mpi, kernel: Path("/bin/true"))
    if job is not None:
        monkeypatch.setenv("SLURM_JOB_ID", job)
    request = Request("0", "pingpong", [], parse_layout("1x1x2"), stall_limit_s=0.3)
    launched = launcher().launch(request, tmp_path, lambda *heard: None)
    expected = "its ranks had not started after 0.3 s" if job is None else "no point was finished for 0.3 s"
    assert launched.cause.startswith(expected)
    assert launched.record["cause"] == launched.cause


def test_without_srun_the_launcher_is_refused(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="not on PATH"):
        launcher().check(parse_layout("1x1x2"))


@pytest.mark.mpi
def test_measuring_through_srun(earlybird, tmp_path, srun):
    try:
        flavour = find_flavour("mpich")
        require_built(flavour)
    except InputError as error:
        pytest.skip(str(error))
    folder = srun(flavour.mpiexec)
    earlybird("measure", "pingpong", "--launcher", "srun", "--mpi", "mpich", "--levels", "intra_socket",
              "--sizes", "8", "--launches", "1", "--budget", "1s", "-o", "run")  # fmt: skip
    arguments = (folder / "arguments").read_text()
    assert arguments.startswith("-n 2 -N 1 ") and " --mpi=pmi2 " in arguments
    (launch,) = [json.loads(line) for line in (tmp_path / "run" / "launches.ndjson").read_text().splitlines()]
    assert (launch["launcher"], launch["exit"], launch["binding"]) == ("srun", 0, "core")
    assert launch["command_line"][0] == "srun"
    assert shutil.which("srun") == str(folder / "srun")
