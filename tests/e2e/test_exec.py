"""`exec` puts libearlybird into the ranks and into nothing else, with every launcher and on every node."""

import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from earlybird.machine.flavours import find_flavour
from earlybird.machine.programs import SONAMES
from earlybird.toolchain.build import has_library, library_path, native_sources
from tests import slurm as real_slurm
from tests.cluster import running_cluster
from tests.conftest import EARLYBIRD, require_mpi

pytestmark = pytest.mark.mpi

WHERE = Path(__file__).parent / "programs" / "where.c"
STUCK = Path(__file__).parent / "programs" / "stuck.c"
LATE = Path(__file__).parent / "programs" / "late.c"
PAGE = Path(__file__).parents[2] / "docs" / "exec.md"
PROFILE = Path(__file__).parents[1] / "recorded" / "golden" / "profile-1.json"
COLLECTIVES_PROFILE = PAGE.parents[1] / "examples" / "collectives" / "profile.json"
# What may stand in a variable of ours, such as fitted costs.
NOTE = "intra=0:1e-6,8:2 inter='a \"b"


@pytest.fixture(scope="session")
def where_of(tmp_path_factory):
    """The program that tells where it is, compiled for an MPI; a test skips without its libearlybird."""
    folder = tmp_path_factory.mktemp("where")

    def compiled(mpi: str) -> str:
        require_mpi(mpi)
        if not has_library(find_flavour(mpi)):
            pytest.skip(f"libearlybird is not built for {mpi}")
        program = folder / f"where-{mpi}"
        if not program.exists():
            arguments = [
                EARLYBIRD,
                "exec",
                "--no-interpose",
                "--mpi",
                mpi,
                "--",
                "mpicc",
                WHERE,
                "-o",
                program,
            ]
            subprocess.run(arguments, check=True, timeout=60)
        return str(program)

    return compiled


@pytest.fixture
def stuck(tmp_path):
    """start(mpi): a launch under `exec` whose ranks wait for partitions that never come, and
    their processes; what is left of it in the end is killed."""
    started: list[subprocess.Popen] = []
    children: list[psutil.Process] = []

    def start(mpi: str) -> tuple[subprocess.Popen, list[psutil.Process]]:
        require_mpi(mpi)
        if not has_library(find_flavour(mpi)):
            pytest.skip(f"libearlybird is not built for {mpi}")
        program, within = tmp_path / "stuck", [EARLYBIRD, "exec", "--mpi", mpi, "--"]
        header = f"-I{native_sources() / 'include'}"
        subprocess.run([*within, "mpicc", header, STUCK, "-o", program], check=True, timeout=60)
        process = subprocess.Popen(
            [*within, "mpiexec", "-n", "2", program],
            # A partition arrives alone in the first start.
            env={**os.environ, "EARLYBIRD_SEGMENTS": "partition"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        # Intel MPI's mpiexec puts an empty line between those of two ranks now and then.
        lines = (line for line in process.stdout if line.strip())
        output = [next(lines, "") for _ in range(2)]
        assert all(line.startswith("waits ") for line in output), output
        children.extend(psutil.Process(process.pid).children(recursive=True))
        assert {int(line.split()[1]) for line in output} <= {child.pid for child in children}
        return process, children

    yield start
    for process in [*children, *started]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    for process in started:
        process.communicate()


def ranks(text: str) -> list[dict[str, str]]:
    """The report of each rank, by rank."""
    lines = [line for line in text.splitlines() if line.startswith("rank=")]
    output = [dict(word.split("=", 1) for word in line.split("|")) for line in lines]
    return sorted(output, key=lambda one: int(one["rank"]))


def assert_reached(output: list[dict[str, str]], num_ranks: int, mpi: str) -> None:
    """Every rank has the library, no process above one has, and it is there once."""
    assert [(one["rank"], one["size"]) for one in output] == [
        (str(k), str(num_ranks)) for k in range(num_ranks)
    ]
    for one in output:
        assert one["reached"] == "1"
        assert one["preload"].split(":").count(str(library_path(find_flavour(mpi)))) == 1
        above = [word for word in one["above"].split() if ":" in word]
        assert above and not [word for word in above if word.endswith(":1")], above


def test_ranks_of_a_launcher_are_reached_and_nothing_above_them(mpi, earlybird, where_of):
    where = where_of(mpi)
    result = earlybird("exec", "--mpi", mpi, "--", "mpiexec", "-n", "2", where, "a b", "*")
    output = ranks(result.stdout)
    assert_reached(output, 2, mpi)
    assert output[0]["arguments"] == "a b *"
    daemon = "prterun:0" if mpi == "openmpi" else "hydra_pmi_proxy:0 mpiexec"
    assert daemon in output[0]["above"]
    assert "earlybird" not in result.stderr


def test_a_launcher_by_its_path_and_one_in_a_script_are_reached(mpi, earlybird, where_of, tmp_path):
    where, path = where_of(mpi), find_flavour(mpi).mpiexec
    assert_reached(ranks(earlybird("exec", "--mpi", mpi, "--", path, "-n", "2", where).stdout), 2, mpi)
    (tmp_path / "job").write_text(f"#!/bin/sh\nmpirun -n 1 {where} one : -n 1 {where} two\nexit 7\n")
    (tmp_path / "job").chmod(0o755)
    result = earlybird("exec", "--mpi", mpi, "--", "./job", check=False)
    assert result.returncode == 7
    output = ranks(result.stdout)
    assert_reached(output, 2, mpi)
    assert [one["arguments"] for one in output] == ["one", "two"]
    assert "job:0" in output[0]["above"]


def test_a_program_without_launcher_is_reached_and_other_commands_are_not(mpi, earlybird, where_of):
    assert_reached(ranks(earlybird("exec", "--mpi", mpi, "--", where_of(mpi)).stdout), 1, mpi)
    for command in (["cat", "/proc/self/maps"], ["sh", "-c", "cat /proc/self/maps"]):
        assert "libearlybird" not in earlybird("exec", "--mpi", mpi, "--", *command).stdout


def test_a_program_that_loads_its_mpi_while_it_runs_finds_it(mpi, earlybird):
    script = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).MPI_Init is not None)"
    arguments = (sys.executable, "-c", script, SONAMES[find_flavour(mpi).family])
    assert earlybird("exec", "--mpi", mpi, "--", *arguments).stdout == "True\n"


def test_the_command_begins_at_the_first_word_that_is_no_option(any_mpi, earlybird):
    own = ["sh", "-c", 'printf "%s " "$@"', "sh", "-n", "2", "--", "--help"]
    for begin in ([], ["--"]):
        assert earlybird("exec", "--mpi", any_mpi, *begin, *own).stdout == "-n 2 -- --help "


def test_an_exec_inside_an_exec_adds_nothing_twice(any_mpi, earlybird, where_of):
    where, inner = where_of(any_mpi), [EARLYBIRD, "exec", "--mpi", any_mpi, "--"]
    arguments = ["exec", "--mpi", any_mpi, "--", *inner, "mpiexec", "-n", "2"]
    assert_reached(ranks(earlybird(*arguments, where).stdout), 2, any_mpi)
    around = ranks(earlybird(*arguments, *inner, where).stdout)
    assert [one["preload"].count("libearlybird.so") for one in around] == [1, 1]
    # Without --mpi it is the MPI of the exec around it.
    assert_reached(ranks(earlybird(*arguments[:4], EARLYBIRD, "exec", "--", where).stdout), 1, any_mpi)
    alone = earlybird(*arguments[:4], EARLYBIRD, "exec", "--no-interpose", "--", "mpiexec", "-n", "2", where)
    assert [one["reached"] for one in ranks(alone.stdout)] == ["0", "0"]


def test_what_a_person_preloads_and_sets_stays(mpi, earlybird, where_of):
    own = {"LD_PRELOAD": "libm.so.6", "EARLYBIRD_TEST_NOTE": NOTE}
    output = ranks(earlybird("exec", "--mpi", mpi, "--", "mpiexec", "-n", "2", where_of(mpi), env=own).stdout)
    assert_reached(output, 2, mpi)
    assert all(one["preload"].startswith("libm.so.6:") and one["note"] == NOTE for one in output)


def test_no_interpose_leaves_the_mpi_alone(any_mpi, earlybird, where_of):
    arguments = ("exec", "--no-interpose", "--mpi", any_mpi, "--", "mpiexec", "-n", "2", where_of(any_mpi))
    result = earlybird(*arguments)
    assert [one["reached"] for one in ranks(result.stdout)] == ["0", "0"]
    assert result.stderr == ""


def test_switched_off_it_reaches_no_rank_also_in_a_script(any_mpi, earlybird, where_of, tmp_path):
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\nEARLYBIRD_OFF=1 mpiexec -n 2 {where_of(any_mpi)}\n")
    script.chmod(0o755)
    launch = ("mpiexec", "-n", "2", where_of(any_mpi))
    for command, env in ((launch, {"EARLYBIRD_OFF": "1"}), ((script,), {})):
        result = earlybird("exec", "--mpi", any_mpi, "--", *command, env=env)
        assert [one["reached"] for one in ranks(result.stdout)] == ["0", "0"]
        assert result.stderr == ""


def test_a_file_that_may_not_be_run_is_refused_with_the_remedy(
    any_mpi, earlybird, where_of, tmp_path, refused
):
    where_of(any_mpi)
    (tmp_path / "job.sh").write_text("#!/bin/sh\n")
    for name, remedy in (("./job.sh", "chmod +x ./job.sh"), ("job.sh", "give its path, ./job.sh")):
        refused(earlybird("exec", "--mpi", any_mpi, "--", name, check=False), remedy)


def test_what_is_no_program_is_not_to_be_made_one(any_mpi, in_process, where_of, tmp_path, refused):
    where_of(any_mpi)
    (tmp_path / "notes.txt").write_text("a text\n")
    for name, kind in (
        ("./notes.txt", "give a program"),
        ("/dev/null", "not a regular file"),
        ("./", "a folder"),
    ):
        ended = in_process("exec", "--mpi", any_mpi, "--", name, check=False)
        refused(ended, kind)
        assert "chmod" not in ended.stderr


def test_a_compiler_that_the_mpi_lacks_is_named_with_an_mpi_that_has_it(in_process, where_of, monkeypatch):
    where_of("mpich")
    monkeypatch.setenv("PATH", "/nowhere")
    ended = in_process("exec", "--mpi", "mpich", "--", "mpif90", "a.f90", check=False)
    assert ended.returncode == 2
    assert "mpich has no compiler mpif90; " in ended.stderr and "--mpi intel" in ended.stderr


def test_a_static_program_is_reported_and_runs(any_mpi, earlybird, where_of, tmp_path):
    where_of(any_mpi)
    (tmp_path / "app.c").write_text('#include <stdio.h>\nint main(void) { puts("ran"); return 0; }\n')
    made = subprocess.run(["cc", "-static", "app.c", "-o", "app"], cwd=tmp_path, capture_output=True)
    if made.returncode != 0:
        pytest.skip("no static libc is installed")
    result = earlybird("exec", "--mpi", any_mpi, "--", "mpiexec", "-n", "2", "./app")
    assert result.stdout.split() == ["ran", "ran"]
    (sentence,) = [line for line in result.stderr.splitlines() if line.startswith("earlybird: ")]
    assert "./app" in sentence and "statically" in sentence


def test_a_program_of_another_mpi_is_reported_and_not_preloaded(earlybird, where_of):
    where = where_of("mpich")
    where_of("openmpi")
    # Each process starts by itself: an mpiexec of another MPI makes no ranks of them.
    result = earlybird("exec", "--mpi", "openmpi", "--", where)
    assert [one["reached"] for one in ranks(result.stdout)] == ["0"]
    (sentence,) = [line for line in result.stderr.splitlines() if line.startswith("earlybird: ")]
    for part in (where, "MPICH", "libmpi.so.12", "openmpi", "libmpi.so.40", "--mpi mpich"):
        assert part in sentence


def test_scripts_run_with_the_library_and_nothing_is_said(mpi, earlybird, where_of):
    where_of(mpi)
    script = "print('libearlybird.so' in open('/proc/self/maps').read())"
    result = earlybird("exec", "--mpi", mpi, "--", "mpiexec", "-n", "2", sys.executable, "-c", script)
    # Two ranks' lines may run into one another on their way through mpiexec.
    assert result.stdout.replace("True", "").split() == [] and result.stdout.count("True") == 2
    assert result.stderr == ""


def test_the_example_of_the_page_runs(any_mpi, earlybird, where_of, tmp_path):
    where_of(any_mpi)
    (source,) = re.findall(r"^```c\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "app.c").write_text(source)
    arguments = ("exec", "--mpi", any_mpi)
    earlybird(*arguments, "--", "mpicc", "-O2", "-Wall", "-Werror", "app.c", "-o", "app")
    for alone in ([], ["--no-interpose"]):
        output = earlybird(*arguments, *alone, "--", "mpiexec", "-n", "2", "./app").stdout
        assert re.fullmatch(r"\d+\.\d\d ms from the last MPI_Pready until all has arrived\n", output)


def test_a_profile_reaches_the_ranks_as_costs(any_mpi, earlybird, where_of, refused):
    where_of(any_mpi)
    arguments = ("exec", "--mpi", any_mpi, "--profile", PROFILE)
    result = earlybird(*arguments, "--", "mpiexec", "-n", "1", "printenv", "EARLYBIRD_COSTS")
    assert result.stdout.startswith("intra_node_protocols=0:")
    assert "latency" in result.stderr
    refused(earlybird(*arguments, "--no-interpose", "--", "true", check=False), "--profile", "--no-interpose")
    arguments = ("exec", "--mpi", any_mpi, "--profile", COLLECTIVES_PROFILE)
    refused(earlybird(*arguments, "--", "true", check=False), "no latency and bandwidth")


def test_lanes_reach_the_ranks_with_the_contexts_that_they_need(mpi, earlybird, where_of, refused):
    where_of(mpi)
    names = ("EARLYBIRD_LANES", "MPIR_CVAR_CH4_NUM_VCIS")
    launch = ("--", "mpiexec", "-n", "1", "printenv", *names)
    if mpi != "mpich":
        for lanes, status in ((2, 2), (1, 0)):
            ended = earlybird("exec", "--mpi", mpi, "--lanes", lanes, "--", "true", check=False)
            assert ended.returncode == status
            if status:
                refused(ended, "--lanes is 2", "no communication contexts", "--mpi mpich")
        return
    assert earlybird("exec", "--mpi", mpi, "--lanes", "4", *launch).stdout.split() == ["4", "4"]
    own = {"MPIR_CVAR_CH4_NUM_VCIS": "8"}
    assert earlybird("exec", "--mpi", mpi, "--lanes=4", *launch, env=own).stdout.split() == ["4", "8"]
    for wrong in ("0", "17", "-1", "two"):
        ended = earlybird("exec", "--mpi", mpi, "--lanes", wrong, "--", "true", check=False)
        assert ended.returncode == 2 and "--lanes" in ended.stderr and wrong in ended.stderr
    ended = earlybird("exec", "--mpi", mpi, "--lanes", "2", "--no-interpose", "--", "true", check=False)
    refused(ended, "--lanes", "--no-interpose")


def test_an_mpi_that_is_loaded_while_the_program_runs_is_found(mpi, earlybird, where_of, tmp_path):
    where_of(mpi)
    library = tmp_path / "late.so"
    host = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).run(int(sys.argv[2])))"
    within = ("exec", "--mpi", mpi, "--")
    earlybird(*within, "mpicc", "-shared", "-fPIC", LATE, "-o", library)
    launch = (*within, "mpiexec", "-n", "2", sys.executable, "-c", host, library, 1)
    output = earlybird(*launch, env={"EARLYBIRD_STATS": "1"}).stderr
    assert "earlybird: partitioned communication" in output
    output = earlybird(*launch[:-1], 0, env={"EARLYBIRD_STATS": "1"}).stderr
    assert "earlybird: partitioned communication" in output
    if mpi == "openmpi":
        return  # is preloaded, because its handles are data, and so is not late at all
    bound = earlybird(*launch, env={"LD_BIND_NOW": "1"}, check=False)
    assert bound.returncode != 0 and "LD_BIND_NOW is set" in bound.stderr


def test_a_program_of_another_kind_of_mpi_in_a_script_ends_with_a_sentence(earlybird, where_of, tmp_path):
    where_of("mpich")
    program = where_of("openmpi")
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\nexport LD_PRELOAD={library_path(find_flavour('mpich'))}\n{program}\n")
    script.chmod(0o755)
    ended = earlybird("exec", "--mpi", "openmpi", "--no-interpose", "--", script, check=False)
    assert ended.returncode == 2, ended
    assert "this process runs Open MPI" in ended.stderr and "select the build with" in ended.stderr


def test_a_missing_library_is_reported_with_the_command_that_builds_it(
    any_mpi, own_home, earlybird, tmp_path
):
    # A copy of the MPI's compiler, for which nothing was ever built.
    mpicc = tmp_path / "mpicc"
    mpicc.write_text(f'#!/bin/sh\nexec "{find_flavour(any_mpi).mpicc}" "$@"\n')
    (tmp_path / "mpiexec").write_text(f'#!/bin/sh\nexec "{find_flavour(any_mpi).mpiexec}" "$@"\n')
    for path in (mpicc, tmp_path / "mpiexec"):
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    result = earlybird("exec", "--mpi", mpicc, "--", "echo", "ran")
    assert result.stdout == "ran\n"
    assert f"`earlybird build --mpi {mpicc}`" in result.stderr
    assert {key.name for key in (own_home / "keys").iterdir()} > {any_mpi}


def test_ctrl_c_ends_ranks_that_wait_for_partitions(mpi, stuck):
    process, children = stuck(mpi)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert process.returncode > 0, output  # mpiexec's own: 2 of MPICH, 1 of Open MPI, 255 of Intel MPI
    assert psutil.wait_procs(children, timeout=60)[1] == []
    assert "went on" not in output


def test_the_death_of_a_rank_in_a_transfer_ends_the_launch_and_is_reported(mpi, stuck):
    process, children = stuck(mpi)
    [one for one in children if one.name() == "stuck"][-1].kill()
    output, _ = process.communicate(timeout=120)
    assert process.returncode > 0, output
    assert re.search(r"signal:? 9|SIGKILL", output, re.IGNORECASE), output
    assert psutil.wait_procs(children, timeout=60)[1] == []


@pytest.fixture(scope="module")
def cluster():
    with running_cluster(2, "1gbit", "--no-check") as output:
        yield output


def test_ranks_on_other_nodes_are_reached_with_our_variables(mpi, cluster, earlybird, where_of):
    arguments = ["cluster", "mpiexec", "--name", cluster["name"], "--layout", "2x1x1", "--", where_of(mpi)]
    result = earlybird("exec", "--mpi", mpi, "--", EARLYBIRD, *arguments, env={"EARLYBIRD_TEST_NOTE": NOTE})
    output = ranks(result.stdout)
    assert [one["host"] for one in output] == ["node0", "node1"]
    assert_reached(output, 2, mpi)
    assert [one["note"] for one in output] == [NOTE, NOTE]
    outside = ranks(earlybird(*arguments[:3], arguments[3], "--mpi", mpi, *arguments[4:]).stdout)
    assert [one["reached"] for one in outside] == ["0", "0"]


OWN_NAMES = [f"{node}{real_slurm.DOMAIN}" for node in real_slurm.NODES]


def test_ranks_of_srun_are_reached(slurm, where_of, any_mpi, tmp_path):
    if any_mpi == "openmpi":
        pytest.skip("needs an MPI that speaks PMI-2")
    where = where_of(any_mpi)
    begin = ["salloc", "-Q", "-N2", EARLYBIRD, "exec", "--mpi", any_mpi, "--"]
    environment = {"EARLYBIRD_TEST_NOTE": NOTE}
    step = ["srun", "--mpi=pmi2", "-N2", "-n2"]
    for arguments in (
        [*step, where],
        [shutil.which("srun"), *step[1:], "--export=NONE", where, "--export=x"],
    ):
        result = slurm.run(*begin, *arguments, cwd=tmp_path, env=environment)
        assert result.returncode == 0, result.stderr
        output = ranks(result.stdout)
        assert_reached(output, 2, any_mpi)
        assert sorted(one["host"] for one in output) == OWN_NAMES
        assert [one["note"] for one in output] == [NOTE, NOTE]
    assert output[0]["arguments"] == "--export=x"
    # An mpiexec that starts its daemons with srun, which then must not be reached.
    result = slurm.run(*begin, "mpiexec", "-n", "2", "-ppn", "1", where, cwd=tmp_path, env=environment)
    assert result.returncode == 0, result.stderr
    assert_reached(ranks(result.stdout), 2, any_mpi)
