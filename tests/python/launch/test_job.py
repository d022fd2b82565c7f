"""What a launch says of its end, whatever its mpiexec said."""

import json
import os
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.launch import job as jobs
from earlybird.launch import local
from earlybird.launch.launcher import Launched, Request
from earlybird.launch.mpiexec import Invocation
from earlybird.machine.flavours import Flavour

POINT = {"mpi": "none", "level": "intra_socket", "size_bytes": 8, "buffers": "vary"}
SAMPLE = {"kernel": "pingpong", "quantity": "half_round_trip", "config": POINT, "times_s": [1e-6],
          "warmup": 0, "batch": 1, "converged": True, "oversubscribed": False, "validated": True}  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a script in the place of mpiexec and its ranks; `$OUT` is where samples go."""
    monkeypatch.setattr(jobs, "kernel_path", lambda mpi, kernel: tmp_path / kernel)

    def launch(
        script: str, watch=None, settings=None, preferred=None, compared=(), is_one_machine=True, **more
    ):
        mpi = SimpleNamespace(
            name="none", family="mpich", version="0", environment=lambda: dict(os.environ),
            settings=settings or {}, compared=compared,
        )  # fmt: skip
        arguments = ("sh", "-c", script, "mpiexec")
        job = jobs.Job("local", mpi, "core", watch=watch, is_one_machine=is_one_machine)
        limits = {"time_limit_s": 20, "stall_limit_s": 20}
        request = Request("0", "pingpong", [POINT], parse_layout("1x1x1"), **limits, **more)
        out = {"OUT": str(tmp_path / "samples.ndjson")}
        invocation = Invocation(arguments, out, preferred=preferred or {})
        return jobs.run_kernel(job, invocation, request, tmp_path, lambda *output: None)

    return launch


def _complete(*hosts: str, **extra) -> str:
    placement = [
        {"rank": rank, "host": host, "sockets": [0], "cpus": [0]}
        for rank, host in enumerate(hosts or ("here",))
    ]
    record = {"launch_record": {"placement": placement, "clock": {"resolution_s": 1e-8}}}
    lines = "\n".join(json.dumps(line) for line in (record, SAMPLE | extra))
    return f"printf '%s\\n' '{lines}' > $OUT"


@pytest.mark.parametrize("is_one_machine", [True, False])
def test_ranks_report_their_shared_memory_on_one_machine_alone(run, tmp_path, is_one_machine):
    assert run(_complete(), is_one_machine=is_one_machine).cause is None
    assert (tmp_path / "samples.ndjson.shared").exists() == is_one_machine


@pytest.mark.parametrize(
    ("hosts", "is_one_machine"),
    [((), True), (("localhost", socket.gethostname()), True), (("localhost", "elsewhere"), False)],
)
def test_hosts_are_one_machine_if_all_are_this_one(monkeypatch, tmp_path, hosts, is_one_machine):
    caught = []
    launched = Launched({"placement": []}, [], None)
    monkeypatch.setattr(local, "run_kernel", lambda job, *others: caught.append(job) or launched)
    mpi = Flavour("mpich", "mpich", "1", Path("/mpi/bin/mpicc"), Path("/mpi/bin/mpiexec"))
    request = Request("0", "pingpong", [], parse_layout(f"{len(hosts) or 1}x1x1"))
    local.MpiexecLauncher(mpi, hosts).launch(request, tmp_path, lambda *heard: None)
    assert [job.is_one_machine for job in caught] == [is_one_machine]


def test_points_missing_after_a_good_end_are_put_down_to_what_has_died(run):
    """prterun ends with 0 when a node is killed while ranks are being started on it."""
    assert run("exit 0", watch=lambda: "node1 is gone").cause == "node1 is gone"


def test_ranks_get_the_settings_of_their_mpi_and_the_record_has_them(run):
    launched = run(f"[ $ANY_VARIABLE = 7 ] && {_complete()}", settings={"ANY_VARIABLE": "7"})
    assert launched.cause is None
    assert launched.record["environment"]["ANY_VARIABLE"] == "7"
    assert "ANY_VARIABLE" not in launched.record["set_by_launcher"]


def test_the_record_has_variables_that_another_side_sets(run, monkeypatch):
    monkeypatch.setenv("ANY_VARIABLE", "9")
    monkeypatch.delenv("OTHER", raising=False)
    record = run(_complete(), compared=("ANY_VARIABLE", "OTHER", "PATH")).record
    assert record["environment"]["ANY_VARIABLE"] == "9"
    assert record["environment"]["OTHER"] is None
    assert record["environment"]["PATH"] == os.environ["PATH"]


def test_a_variable_that_the_launch_needs_otherwise_is_refused(run, monkeypatch):
    with pytest.raises(InputError, match=r"--env X=1 has no effect .* needs X=2"):
        run("exit 0", settings={"X": "1"}, environment={"X": "2"})
    monkeypatch.setenv("X", "3")
    with pytest.raises(InputError, match=r"X=3 of the environment has no effect .* needs X=2.*; unset X"):
        run("exit 0", environment={"X": "2"})
    monkeypatch.setenv("MPIR_CVAR_CH4_NUM_VCIS", "4")
    with pytest.raises(InputError, match=r"needs MPIR_CVAR_CH4_NUM_VCIS=2"):
        run("exit 0", vcis=2)
    # What --env says replaces the shell's.
    assert run(_complete(), settings={"X": "2"}, environment={"X": "2"}).cause is None


@pytest.mark.parametrize(
    ("shell", "setting", "applies"), [(None, None, "1"), ("0", None, "0"), ("0", "2", "2")]
)
def test_what_the_launch_prefers_gives_way_to_the_user(run, monkeypatch, shell, setting, applies):
    if shell is not None:
        monkeypatch.setenv("OMPI_MCA_mpi_yield_when_idle", shell)
    settings = {} if setting is None else {"OMPI_MCA_mpi_yield_when_idle": setting}
    launched = run(
        f'test "$OMPI_MCA_mpi_yield_when_idle" = {applies} && {_complete()}', settings=settings,
        preferred={"OMPI_MCA_mpi_yield_when_idle": "1"},
    )  # fmt: skip
    assert launched.cause is None
    assert launched.record["environment"]["OMPI_MCA_mpi_yield_when_idle"] == applies
    assert ("OMPI_MCA_mpi_yield_when_idle" in launched.record["set_by_launcher"]) == (applies == "1")


@pytest.mark.parametrize(("preferred", "value"), [({}, "*/cache"), ({"EARLYBIRD_CACHE": "off"}, "off")])
def test_a_launch_with_the_library_keeps_what_it_learns_apart_unless_its_launcher_prefers_otherwise(
    run, monkeypatch, preferred, value
):
    monkeypatch.delenv("EARLYBIRD_CACHE", raising=False)
    monkeypatch.setattr(jobs, "require_library", lambda mpi: None)
    monkeypatch.setattr(jobs, "library_path", lambda mpi: "library")
    monkeypatch.setattr(jobs.interpose, "through_shim", lambda arguments, mpi, environment, _: (
        arguments, environment))  # fmt: skip
    script = f'case "$EARLYBIRD_CACHE" in {value}) {_complete()};; esac'
    assert run(script, preload=True, preferred=preferred).cause is None


@pytest.mark.parametrize("watch", [None, lambda: None])
def test_points_missing_without_any_reason_are_reported(run, watch):
    launched = run("exit 0", watch=watch)
    assert launched.cause == "it ended after 0 of 1 points without an error message"
    assert launched.record["cause"] == launched.cause


def test_what_dies_after_the_last_point_does_not_matter(run):
    launched = run(_complete(), watch=lambda: "node1 is gone")
    assert launched.cause is None
    assert [sample.config for sample in launched.samples] == [POINT]


def test_the_contexts_asked_for_reach_the_ranks_and_the_record(run):
    launched = run(f'test "$MPIR_CVAR_CH4_NUM_VCIS" = 4 && {_complete()}', vcis=4)
    assert launched.cause is None
    assert launched.record["environment"]["MPIR_CVAR_CH4_NUM_VCIS"] == "4"
    assert "MPIR_CVAR_CH4_NUM_VCIS" in launched.record["set_by_launcher"]


@pytest.mark.parametrize(
    ("hosts", "extra", "residual_s"),
    [
        (("here", "here"), {}, 0.0),
        (("here", "there"), {}, None),
        (("here", "there"), {"clock_residual_s": 3e-7}, 3e-7),
    ],
)
def test_a_launch_records_its_clock_residual(run, hosts, extra, residual_s):
    assert run(_complete(*hosts, **extra)).record["clock"]["residual_s"] == residual_s
