"""What the shims add to the arguments of the launchers of sites: PALS, ALPS, JSM, Flux, ibrun."""

import subprocess

import pytest

from earlybird.launch.interpose import PREFIX

LIBRARY = "/opt/earlybird/lib/libearlybird.so"
LIBMPI = "/opt/openmpi/lib/libmpi.so.40"


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("jsrun", "-n 2 app -E", "-E LD_PRELOAD={} -n 2 app -E"),
        ("jsrun", "-n 1 a : -n 1 b", "-E LD_PRELOAD={} -n 1 a : -E LD_PRELOAD={} -n 1 b"),
        ("jsrun", "-E LD_PRELOAD=/t.so app", "-E LD_PRELOAD=/t.so:{} app"),
        ("jsrun", "--env=LD_PRELOAD=/t.so app", "--env=LD_PRELOAD=/t.so:{} app"),
        ("palsrun", "-n 2 app", "--env LD_PRELOAD={} -n 2 app"),
        ("palsrun", "a : -n 1 b", "--env LD_PRELOAD={} a : --env LD_PRELOAD={} -n 1 b"),
        ("palsrun", "--env=LD_PRELOAD=/t.so a : b", "--env=LD_PRELOAD=/t.so:{} a : --env LD_PRELOAD={} b"),
        # Global options of aprun stand before the first program, once.
        ("aprun", "-n 1 a : -n 1 b", "-e LD_PRELOAD={} -n 1 a : -n 1 b"),
        ("aprun", "-e LD_PRELOAD=/t.so -n 1 a", "-e LD_PRELOAD=/t.so:{} -n 1 a"),
        ("flux", "run -n 2 app run", "run --env=LD_PRELOAD={} -n 2 app run"),
        ("flux", "-v submit -n 2 app", "-v submit --env=LD_PRELOAD={} -n 2 app"),
        ("flux", "mini run app", "mini run --env=LD_PRELOAD={} app"),
        (
            "flux", "run --env=LD_PRELOAD=/t.so --env=-X app",
            "run --env=LD_PRELOAD={} --env=LD_PRELOAD=/t.so:{} --env=-X app",
        ),
        ("flux", "run --env LD_PRELOAD=/t.so app", "run --env=LD_PRELOAD={} --env LD_PRELOAD=/t.so:{} app"),
        ("flux", "resource list", "resource list"),
        ("flux", "alloc -N1 run", "alloc -N1 run"),
        ("ibrun", "app -n 3", "env LD_PRELOAD={} app -n 3"),
        ("ibrun", "-n 4 -o 2 task_affinity app", "-n 4 -o 2 env LD_PRELOAD={} task_affinity app"),
    ],
)  # fmt: skip
def test_the_ranks_of_a_sites_launcher_preload_the_library(call, name, arguments, expected):
    got, own, _ = call(name, *arguments.split())
    assert got == expected.replace("{}", LIBRARY).split()
    assert own == ""


@pytest.mark.parametrize("name", ["jsrun", "palsrun", "aprun", "flux", "ibrun"])
def test_arguments_arrive_as_they_are_and_what_a_person_preloads_comes_first(call, name):
    arguments = (["run"] if name == "flux" else []) + ["app", "a b", "*", "", "$HOME"]
    got, own, _ = call(name, *arguments, LD_PRELOAD="/asan.so")
    assert got[-5:] == arguments[-5:]
    assert any(word.endswith(f"LD_PRELOAD=/asan.so:{LIBRARY}") for word in got)
    assert own == "/asan.so"


@pytest.mark.parametrize("folder", ["opt/cray/pals/1.2/bin", "elsewhere"])
def test_mpiexec_of_pals_is_known_by_its_place(call, tmp_path, folder):
    other = tmp_path / folder / "mpiexec"
    other.parent.mkdir(parents=True)
    other.write_bytes((call.real / "mpiexec").read_bytes())
    other.chmod(0o755)
    # A family whose mpiexec is beside its mpicc has a folder; that of a site has none.
    got, _, _ = call(
        "mpiexec", "app", BANNER="mpiexec 1.2", **{f"{PREFIX}LAUNCHER": str(other), f"{PREFIX}BIN": ""}
    )
    assert got == (["--env", f"LD_PRELOAD={LIBRARY}", "app"] if "pals" in folder else ["app"])


@pytest.mark.parametrize(
    ("name", "arguments"), [("ibrun", ["--unknown", "app"]), ("mpiexec", ["-n", "2", "app"])]
)
def test_what_cannot_be_done_is_said_with_what_to_write_instead(call, name, arguments):
    environment = {"PATH": f"{call.shims}:{call.real}:/usr/bin:/bin", f"{PREFIX}LIBRARY": LIBRARY}
    result = subprocess.run(
        [call.shims / name, *arguments], env=environment, capture_output=True, text=True, timeout=60
    )
    assert result.stdout.splitlines()[: len(arguments)] == arguments
    (sentence,) = result.stderr.splitlines()
    assert f"`{name} ... env LD_PRELOAD={LIBRARY} PROGRAM`" in sentence


@pytest.mark.parametrize(
    ("arguments", "late", "expected"),
    [
        ("python3 script.py", "", f"{LIBRARY}:{LIBMPI}"),
        ("numactl -l /venv/bin/python3.11 -c x", "", f"{LIBRARY}:{LIBMPI}"),
        ("./script", "yes", f"{LIBRARY}:{LIBMPI}"),
        ("./app python.txt pythonic", "", LIBRARY),
    ],
)
@pytest.mark.parametrize("name", ["mpiexec", "srun", "jsrun"])
def test_a_python_preloads_open_mpi_behind_the_library(call, name, arguments, late, expected):
    variables = {f"{PREFIX}LIBMPI": LIBMPI, f"{PREFIX}LATE": late}
    got, own, _ = call(name, *arguments.split(), family="openmpi", **variables)
    assert any(word.endswith(f"LD_PRELOAD={expected}") for word in got)
    assert own == ""
    # Of another MPI nothing more is needed.
    got, _, _ = call("mpiexec", *arguments.split(), family="mpich", **{f"{PREFIX}LATE": late})
    assert got[:3] == ["-genv", "LD_PRELOAD", LIBRARY]


def test_open_mpi_preloaded_by_hand_stays_behind_the_library(call):
    variables = {f"{PREFIX}LIBMPI": LIBMPI, "LD_PRELOAD": f"/asan.so:/old/libearlybird.so:{LIBMPI}"}
    got, _, _ = call("mpiexec", "app", family="openmpi", **variables)
    assert got == ["-x", f"LD_PRELOAD=/asan.so:{LIBRARY}:{LIBMPI}", "app"]


def test_ranks_under_srun_and_no_others_call_a_node_what_slurm_does(call):
    """An mpiexec passes the name of its own node to ranks on all."""
    for launcher in call.real.iterdir():
        launcher.write_text(launcher.read_text() + 'echo "${EARLYBIRD_NODE_NAME_IN-none}"\n')
    under_srun = {"EARLYBIRD_NODE_NAME_IN": "SLURMD_NODENAME"}
    for name, environment, variable in (
        ("srun", {}, "SLURMD_NODENAME"),
        ("srun", {"EARLYBIRD_NODE_NAME_IN": "MINE"}, "MINE"),
        ("mpiexec", under_srun, "none"),
    ):
        _, _, last = call(name, "-n", "2", "app", **environment)
        assert last == variable
    got, *_ = call("srun", "--export=NONE", "app")
    (exports,) = (word for word in got if word.startswith("--export=EARLYBIRD"))
    assert "EARLYBIRD_NODE_NAME_IN" in exports.removeprefix("--export=").split(",")
