"""A folder that comes from others starts nothing that the command line does not name."""

import json
import os
import shlex
from pathlib import Path

import pytest

from earlybird.cli.commands import measure
from earlybird.cli.commands import replay as replay_command
from earlybird.data.errors import InputError
from earlybird.data.mpi_settings import alternatives, options_of
from earlybird.data.profile import load_profile
from earlybird.measure.foreign_runs import unstated
from earlybird.toolchain.selection import selection_of

PLANTED = Path(__file__).parents[2] / "e2e" / "profile.json"
SMALL = ("--sizes", "8", "--launches", "1", "--quiet")


@pytest.fixture
def program(tmp_path):
    """A program whose file `ran` shows that it was run; mpiexec is next to it."""
    for name in ("mpicc", "mpiexec"):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\necho HYDRA build details: Version: 4.0\ntouch {tmp_path / 'ran'}\n")
        path.chmod(0o755)
    return tmp_path / "bin" / "mpicc"


@pytest.fixture
def folder(earlybird, tmp_path):
    """folder(command, **settings) is a run folder of that command with other settings."""
    (tmp_path / "planted.json").write_text(PLANTED.read_text())
    (tmp_path / "ring.csv").write_text("src,dst,bytes\n0,1,8\n")

    def make(command, **settings):
        arguments = ("pingpong",) if command == "measure" else ("ring.csv", "--layout", "1x1x2")
        few = SMALL if command == "measure" else SMALL[2:]
        earlybird(command, *arguments, *few, "--launcher", "synthetic:planted.json", "-o", "foreign")
        path = tmp_path / "foreign" / "run.json"
        header = json.loads(path.read_text())
        header["settings"] |= {"launcher": "local", "mpi": "mpich"} | settings
        path.write_text(json.dumps(header))
        return path.parent

    return make


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (command, kind)
        for command in ("measure", "replay", "against")
        for kind in ("agent", "mpi", "preload", "path", "plugin", "several", "hosts")
        if (command, kind) != ("replay", "several")  # it has one MPI
    ],
)
def test_what_a_folder_names_is_not_run(
    earlybird, refused, folder, program, tmp_path, monkeypatch, command, kind
):
    named = {
        "agent": {"hosts": "a,b", "agent": str(program)},
        "hosts": {"hosts": "a,b"},
        "mpi": {"mpi": str(program)},
        "several": {"mpi": ["mpich", str(program)]},
        "preload": {"mpi": f"mpich+LD_PRELOAD={program}"},
        "path": {"mpi": f"mpich+PATH={program.parent}"},
        "plugin": {"mpi": "openmpi+OMPI_MCA_mca_base_component_path=."},
    }[kind]
    folder("replay" if command == "replay" else "measure", **named)
    before = sorted(tmp_path.rglob("*"))
    arguments = {
        "measure": ("measure", "--resume", "-o", "foreign"),
        "replay": ("replay", "--resume", "-o", "foreign"),
        "against": ("measure", "--against", "foreign", "-o", "mine"),
    }[command]
    ended = earlybird(*arguments, check=False)
    refused(ended, "may come from others", "add `--")
    quoted = shlex.split(ended.stderr.split("`")[1])
    value = next(iter(named.values()))
    if kind == "agent":
        assert quoted == ["--hosts", "a,b", "--agent", str(program)]
    elif kind == "several":
        assert quoted == ["--mpi", "mpich", "--mpi", str(program)]
    elif kind in ("preload", "path", "plugin") and command != "replay":
        mpi, setting = value.split("+")
        assert quoted == ["--mpi", mpi, "--env", setting]
    else:
        assert quoted == [f"--{'hosts' if kind == 'hosts' else 'mpi'}", value]
    assert sorted(tmp_path.rglob("*")) == before

    # What is quoted is what is missing.
    def reach(settings, seed, note):
        raise InputError(f"reached with {settings['mpi']}")

    monkeypatch.setattr(measure, "launchers_of", reach)
    monkeypatch.setattr(replay_command, "make_launcher", reach)
    refused(earlybird(*arguments, *quoted, check=False), f"reached with {named.get('mpi', 'mpich')}")


@pytest.mark.parametrize("command", ["measure", "replay", "against"])
def test_a_compiler_that_a_folder_names_by_its_name_on_path_is_not_run(
    earlybird, refused, folder, program, tmp_path, monkeypatch, command
):
    named = program.rename(program.with_name("mpicc.foo"))
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    folder("replay" if command == "replay" else "measure", mpi=["mpicc.foo"])
    arguments = {
        "measure": ("measure", "--resume", "-o", "foreign"),
        "replay": ("replay", "--resume", "-o", "foreign"),
        "against": ("measure", "--against", "foreign", "-o", "mine"),
    }[command]
    ended = earlybird(*arguments, check=False)
    refused(ended, "may come from others", f"add `--mpi {named}`")
    assert not (tmp_path / "ran").exists()


def test_a_profile_starts_no_compiler(program, tmp_path):
    profile = load_profile(PLANTED)
    context = profile.context | {"flavour": str(program), "version": "4.0"}
    assert selection_of(context) is None
    assert not (tmp_path / "ran").exists()


def test_another_agent_than_the_stored_is_not_used(earlybird, refused, folder, program):
    folder("replay", hosts="a,b", agent="/other/agent")
    resume = ("replay", "--resume", "-o", "foreign", "--hosts", "a,b")
    refused(
        earlybird(*resume, "--agent", program, check=False), "with /other/agent", "give that one, or measure"
    )


@pytest.mark.parametrize(
    ("name", "stated", "variables", "is_missing"),
    [
        ("mpich", (), (), False),
        ("system", (), (), False),
        ("mpich+MPIR_CVAR_CH4_NUM_VCIS=4", (), (), False),
        ("openmpi+OMPI_MCA_btl_sm_eager_limit=65536", (), (), False),
        ("mpich+UCX_TLS=sm", (), (), True),
        ("mpich+UCX_TLS=sm", (), ("UCX_TLS=sm",), False),
        ("mpich+UCX_TLS=sm", ("mpich+UCX_TLS=sm",), (), False),
        ("mpich+UCX_TLS=sm", (), ("UCX_TLS=tcp",), True),
        ("mpich+MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=1", (), (), True),
        ("openmpi+OMPI_MCA_btl_sm_backing_directory=1", (), (), True),
        ("openmpi+OMPI_MCA_plm_ssh_agent=1", (), (), True),
        ("intel+I_MPI_HYDRA_BOOTSTRAP_EXEC=1", (), (), True),
        ("mpich+LD_PRELOAD=1", (), (), True),
        ("mpich+MPIR_CVAR_A=1\n2", (), (), True),
        ("mpich+OMP_NUM_THREADS=8", (), (), False),
        ("mpich+OMP_NUM_THREADS=99999", (), (), True),
        ("mpich+MPIR_CVAR_NUM_VCIS=9999999999", (), (), True),
        ("mpich+MPIR_CVAR_DEBUG_HOLD=1", (), (), True),
        ("openmpi+OMPI_MCA_coll_hook_comm_method_enable_mpi_init=1", (), (), True),
        ("mpich+MPIR_CVAR_NOLOCAL=1", (), (), True),
        ("/opt/mpi/bin/mpicc", (), (), True),
        ("./mpicc", (), (), True),
        ("/opt/mpi/bin/mpicc", ("/opt/mpi/bin/mpicc",), (), False),
        ("/opt/mpi/bin/mpicc+A=1", ("/opt/mpi/bin/mpicc",), (), True),
        ("/opt/mpi/bin/mpicc", ("/opt/mpi/bin/mpicc2",), (), True),
    ],
)
def test_what_must_be_stated(name, stated, variables, is_missing):
    assert unstated(name, stated, variables) == is_missing


def test_the_mpi_of_an_enclosing_exec_is_stated(monkeypatch):
    monkeypatch.setenv("EARLYBIRD_EXEC_MPI", "/opt/mpi/bin/mpicc")
    assert not unstated("/opt/mpi/bin/mpicc") and unstated("/opt/other/bin/mpicc")


def test_a_relative_path_names_the_mpi_that_is_stored_in_full(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert not unstated(f"{tmp_path}/bin/mpicc", ["bin/mpicc"])


def test_the_command_that_continues_a_run_states_what_the_folder_does_not_choose(
    in_process, folder, program, monkeypatch, refused
):
    named = {"mpi": [f"{program}+UCX_TLS=sm", "mpich+UCX_TLS=sm"], "hosts": "a,b", "agent": "ssh -p 22"}
    path = folder("measure", **named)
    (path / "samples.ndjson").write_text("")
    ended = in_process("show", "foreign", check=False)
    refused(ended, "no samples yet; continue it with `earlybird measure --resume ")

    def reach(settings, seed, note):
        raise InputError("reached")

    monkeypatch.setattr(measure, "launchers_of", reach)
    command = shlex.split(ended.stderr.split("`")[1])
    refused(in_process(*command[1:], check=False), "reached")


@pytest.mark.parametrize(
    ("mpis", "variables"),
    [(["mpich"], ["X=1"]), (["mpich", "openmpi"], ["X", "X=1"]), (["mpich"], ["X=1", "Y=a b", "Y=2"])],
)
def test_options_name_the_same_mpis_again(mpis, variables):
    every = alternatives(mpis, variables)
    options = options_of(every)
    given = {
        name: [options[k + 1] for k in range(0, len(options), 2) if options[k] == name] for name in options
    }
    assert alternatives(given["--mpi"], given["--env"]) == every


def test_mpis_that_no_variables_combine_to_are_named_one_by_one():
    mpis = ["mpich+X=1", "openmpi+Y=2"]
    assert options_of(mpis) == ["--mpi", mpis[0], "--mpi", mpis[1]]
    assert options_of(["mpich+X=1"], has_env=False) == ["--mpi", "mpich+X=1"]


def test_a_command_to_start_a_cluster_again_is_quoted(earlybird, refused, folder):
    links = "virtual links of $(touch) Mbit/s each way"
    folder("measure", launcher="cluster:a;touch ran", network=links, nodes=2)
    ended = earlybird("measure", "--resume", "-o", "foreign", check=False)
    refused(ended, "not running")
    words = shlex.split(ended.stderr.split("`")[1])
    assert words[4:] == ["2", "--rate", "$(touch)mbit", "--name", "a;touch ran"]


@pytest.mark.parametrize("name", ["samples.ndjson", "launches.ndjson", "run.json"])
def test_links_of_a_folder_are_not_written_through(earlybird, refused, folder, tmp_path, name):
    path = folder("measure", launcher="synthetic:planted.json", mpi="synthetic")
    outside = tmp_path / "outside"
    outside.write_text((path / name).read_text() + "kept")
    kept = outside.read_text()
    (path / name).unlink()
    (path / name).symlink_to(outside)
    arguments = ("measure", "--resume", "-o", "foreign", "--launches", "2")
    if name == "run.json":  # must be readable
        outside.write_text(kept := kept.removesuffix("kept"))
    refused(earlybird(*arguments, check=False), f"{name} is a link")
    assert outside.read_text() == kept


def test_a_comparison_replaces_a_link_and_not_what_it_names(earlybird, folder, tmp_path):
    path = folder("replay", launcher="synthetic:planted.json", mpi="synthetic")
    outside = tmp_path / "outside"
    outside.write_text("kept")
    (path / "comparison.json").symlink_to(outside)
    earlybird("replay", "--resume", "-o", "foreign", "--profile", "planted.json", "--quiet")
    assert outside.read_text() == "kept" and not os.path.islink(path / "comparison.json")
