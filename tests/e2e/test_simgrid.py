"""A simulated machine as a user types it: what it costs comes back, ranks sit where they should, and refusals
are sentences."""

import json
import os
import shutil

import numpy as np
import pytest

from earlybird.compare.trees import verify
from earlybird.data.check import load_check
from earlybird.data.run import Run
from earlybird.data.simulated_machine import parse_simulated_machine


def by_level(run: Run) -> dict[tuple[str, int], float]:
    return {(s.config["level"], s.config["size_bytes"]): s.times_s[0] for s in run.samples()}


def test_latencies_and_bandwidths_of_the_machine_come_back(earlybird, tmp_path, simgrid):
    earlybird("measure", "pingpong", "--sizes", "1,1MiB", "--launcher", "simgrid:2x2x2", "-o", "run")
    run = Run.open(tmp_path / "run")
    machine = parse_simulated_machine("2x2x2")
    times_s = by_level(run)
    for name, level in machine.levels.items():
        assert times_s[name, 1] == pytest.approx(level.latency_s, rel=0.01)
        expected_s = level.latency_s + (1 << 20) / level.bandwidth_bytes_per_s
        assert times_s[name, 1 << 20] == pytest.approx(expected_s, rel=0.05)
    assert all(len(sample.times_s) == 3 and sample.converged for sample in run.samples())
    assert run.header["machine"]["simulated"]["sources"]
    assert all(launch["simulated_machine"]["cores"] == 2 for launch in run.launches())


def test_messages_of_a_socket_share_its_memory(earlybird, tmp_path, simgrid):
    earlybird(
        "measure", "contention", "--sizes", "4MiB", "--levels", "intra_socket", "--competitors", "2,8",
        "--launcher", "simgrid:1x1x8", "-o", "run",
    )  # fmt: skip
    rates = {
        s.config["competitors"]: s.config["competitors"] * s.config["size_bytes"] / s.times_s[0]
        for s in Run.open(tmp_path / "run").samples()
    }
    machine = parse_simulated_machine("1x1x8")
    assert rates[2] == pytest.approx(2 * machine.levels["intra_socket"].bandwidth_bytes_per_s, rel=0.02)
    assert rates[8] == pytest.approx(machine.socket_bandwidth_bytes_per_s, rel=0.02)


def test_a_file_gives_the_machine_and_replay_finds_ranks_where_its_layout_says(earlybird, tmp_path, simgrid):
    machine = {"schema": "earlybird.simulated-machine/1", "nodes": 2, "sockets": 2, "cores": 1}
    machine["levels"] = {"inter_node": {"latency_s": 5e-6}}
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    (tmp_path / "ring.csv").write_text("src,dst,bytes\n0,1,8\n1,2,8\n2,3,8\n3,0,8\n")
    for map_by in ("socket", "node"):
        earlybird(
            "replay", "ring.csv", "--layout", "2x2x1", "--map-by", map_by, "--launcher",
            "simgrid:machine.json", "-o", map_by,
        )  # fmt: skip
        run = Run.open(tmp_path / map_by)
        places = [(place["node"], place["socket"]) for place in run.launches()[0]["placement"]]
        assert sorted(places) == [(0, 0), (0, 1), (1, 0), (1, 1)]
        assert places[1] == ((0, 1) if map_by == "socket" else (1, 0))
        assert run.samples()[0].times_s.max() > 5e-6


def test_collectives_run_along_the_trees_asked_for_and_repeat(earlybird, tmp_path, simgrid):
    arguments = ("--op", "bcast,reduce", "--ranks", "4,16", "--sizes", "1", "--map-by", "socket,node")
    earlybird("measure", "collective", *arguments, "--launcher", "simgrid:2x2x4", "-o", "run")
    run = Run.open(tmp_path / "run")
    verifications = verify(run.samples(), run.launches())
    forced = {key: one for key, one in verifications.items() if one.tree is not None}
    assert {one.method for one in forced.values()} >= {"linear", "pipeline", "binomial", "own-binomial"}
    assert {one.verification.verdict for one in forced.values()} == {"confirmed"}
    times_s = {}
    for sample in run.samples():
        if sample.quantity == "completion":
            assert np.ptp(sample.times_s) < 0.01 * sample.times_s[0]
            assert sample.validated and not sample.oversubscribed
            key = (sample.config["operation"], sample.config["map_by"], sample.config["ranks"], sample.method)
            times_s[key] = sample.times_s[0]
    for operation in ("bcast", "reduce"):
        for map_by in ("socket", "node"):
            at_16 = {method: times_s[operation, map_by, 16, method] for method in ("binomial", "pipeline")}
            assert at_16["binomial"] < at_16["pipeline"] / 2
    # Every hop of a chain by node leaves the node; by socket one of 15 does.
    assert times_s["bcast", "node", 16, "pipeline"] > 1.5 * times_s["bcast", "socket", 16, "pipeline"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--launcher", "simgrid:2x64"), "NODESxSOCKETSxCORES"),
        (("--launcher", "simgrid:2x2x2", "--mpi", "mpich"), "omit --mpi"),
        (("--launcher", "simgrid:2x2x2", "--threads", "2"), "one thread"),
        (("--launcher", "simgrid:1x1x2", "--levels", "inter_node"), "not available"),
        (("--mpi", "simgrid"), "--launcher simgrid"),
    ],
)
def test_what_cannot_be_simulated_is_refused(in_process, refused, simgrid, arguments, word):
    refused(in_process("measure", "pingpong", *arguments, "-o", "run", check=False), word)


def test_suites_of_threads_and_partitions_are_refused(earlybird, refused, simgrid):
    for suite in ("pipeline", "msgrate"):
        result = earlybird("measure", suite, "--launcher", "simgrid:1x1x2", "-o", "run", check=False)
        refused(result, suite, "pingpong")


def test_without_simgrid_every_method_to_ask_for_it_says_how_to_get_it(
    in_process, refused, tmp_path, monkeypatch, nothing_installed
):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "uname"):
        os.symlink(shutil.which(name), programs / name)
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(programs))
    for arguments in (
        ("measure", "pingpong", "--launcher", "simgrid:2x2x2", "-o", "run"),
        ("measure", "pingpong", "--mpi", "simgrid", "-o", "run"),
        ("exec", "--mpi", "simgrid", "--", "true"),
        ("build", "--mpi", "simgrid"),
    ):
        refused(in_process(*arguments, check=False), "SimGrid is not installed", "install")
    assert "no  simulation" in in_process("doctor").stdout


def test_a_wave_reaches_the_corner_of_the_next_sweep_before_it_starts(earlybird, simgrid):
    """Four sweeps of 8 blocks cross a grid of N times N ranks in 32 + 6 (N - 1) blocks: each has to reach the
    corner of the next, or the last rank, N - 1, 2 (N - 1), N - 1 and 2 (N - 1) blocks away."""
    block_s = 1e-3
    points = rows(
        earlybird, "sweep3d", "--launcher", "simgrid:1x2x32", "--ranks", "1,4,16,64", "--scaling", "weak",
        "--cells", "2x2x8", "--compute", f"{block_s}",
    )  # fmt: skip
    for point, width in zip(points, (1, 2, 4, 8), strict=True):
        assert point["ranks"] == width**2
        assert point["time_s"] == pytest.approx((32 + 6 * (width - 1)) * block_s, rel=2e-2)
        assert point["computing_s"] == pytest.approx(32 * block_s)


def test_hundreds_of_ranks_exchange_halos(earlybird, simgrid):
    points = rows(
        earlybird, "halo3d", "--launcher", "simgrid:4x2x27", "--ranks", "216", "--scaling", "weak",
        "--cells", "3x3x3", "--compute", "1ms", "--stencil", "27", "--partitions", "1",
    )  # fmt: skip
    assert [point["method"] for point in points] == ["funnelled", "persistent"]
    # 26 messages from each of the 4**3 ranks inside, fewer from the others.
    assert {point["messages"] for point in points} == {(3 * 6 - 2) ** 3 - 6**3}


def rows(earlybird, *arguments):
    printed = earlybird("measure", *arguments, "--quick", "--json", "-o", "run").stdout
    return json.loads(printed)["points"]


def test_simulated_nodes_are_checked_and_alike(earlybird, tmp_path, simgrid):
    done = earlybird("check", "--launcher", "simgrid:6x1x1", "--quiet", "-o", "run")
    assert "All 6 nodes and 15 links are alike" in done.stdout
    (machine,) = {launch["simulated_machine"]["levels"]["inter_node"]["latency_s"] for launch in Run.open(
        tmp_path / "run").launches()}  # fmt: skip
    check = load_check(tmp_path / "run" / "check.json")
    apart = ~np.eye(6, dtype=bool)
    assert check.latency_s[apart] == pytest.approx(machine, rel=0.02)
