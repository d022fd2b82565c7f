"""`earlybird predict program` from the command line."""

import json

import pytest

from earlybird.data.profile import Profile
from tests import recordings
from tests.python.record.test_simulation import BANDWIDTH, PROFILE, _call, level, recorded
from tests.recordings import BCAST, FINALIZE, INIT

__all__ = ["recorded"]


def test_command_prints_the_difference_and_what_to_do(recorded, run_main, tmp_path, monkeypatch):
    recorded()
    monkeypatch.chdir(tmp_path)
    PROFILE.save("p.json")
    predict = ("predict", "program", "rec", "--profile", "p.json")
    status, out, err = run_main(*predict, "--compute", "MPI_Allreduce=0.5x", "--progress")
    assert (status, err) == (0, "")
    assert out.startswith("Recorded 310 ms, simulated as recorded 310 ms, difference +0.0 %.\n")
    assert "With --compute MPI_Allreduce=0.5x, --progress: 260 ms" in out
    assert "speed-up 1.19" in out and "--balance all" in out
    _, out, _ = run_main(*predict, "--json")
    (tmp_path / "simulated.json").write_text(out)
    status, shown, _ = run_main("show", "simulated.json")
    assert status == 0 and shown.startswith("Recorded 310 ms")
    status, out, err = run_main(
        *predict, "--aggregate", "--partitions", "4", "--algorithm", "allreduce=ring", "--tolerance"
    )
    assert status == 0
    assert "With --algorithm allreduce=ring, --aggregate, --partitions 4 with 4 % noise: 309 ms" in out
    assert "Latency and bandwidth at which the run takes longer" in out and "1.6 ms" in out
    status, out, err = run_main(*predict, "--window", "50ms..180ms")
    assert status == 0 and out.startswith("Recorded 130 ms") and "--window 50ms..180ms is simulated" in err
    for wrong, reason in (
        (("--algorithm", "allreduce=foo"), "give one of ring"),
        (("--algorithm", "allreduce=ring", "--algorithm", "allreduce=rabenseifner"), "twice"),
        (("--noise-percent", "4"), "give the number of partitions"),
        (("--window", "MPI_Bcast:1..2"), "rank 0 has made 0 calls of MPI_Bcast"),
        (("--compute", "MPI_Allreduce"), "give SITE=FACTORx"),
        (("--balance", "foo"), "no call site foo"),
        (("--to-layout", "1x1x3"), "3 ranks"),
        (("--set", "inter_node.bandwidth=2x"), "no level inter_node"),
    ):
        status, _, err = run_main(*predict, *wrong)
        assert status == 2 and reason in err


def test_trace_has_the_calls_at_their_simulated_times(recorded, run_main, tmp_path, monkeypatch):
    recorded()
    monkeypatch.chdir(tmp_path)
    PROFILE.save("p.json")
    ends_us = {}
    for options in ((), ("--compute", "MPI_Allreduce=0.5x")):
        status, _, err = run_main(
            "predict", "program", "rec", "--profile", "p.json", *options, "--trace", "run.json"
        )
        assert status == 0 and "wrote run.json" in err
        lines = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
        calls = [line for line in lines if line["ph"] == "X"]
        ends_us[options] = {(line["pid"], line["name"]): line["ts"] for line in calls}
        first_us = min(line["ts"] + line["dur"] for line in calls if line["name"] == "MPI_Init")
        ends_us[options]["end"] = (
            max(line["ts"] for line in calls if line["name"] == "MPI_Finalize") - first_us
        )
        assert [line["ph"] for line in lines if line["ph"] in "sf"] == ["s", "f"]
    assert ends_us[()]["end"] == pytest.approx(310_000, abs=1)
    assert ends_us["--compute", "MPI_Allreduce=0.5x"]["end"] == pytest.approx(260_250, rel=1e-3)
    status, _, err = run_main("predict", "program", "rec", "--profile", "p.json", "--trace", "no/run.json")
    assert status == 2 and "the folder no does not exist" in err


def test_broadcasts_that_moved_while_a_rank_computed_are_messages(run_main, tmp_path, monkeypatch):
    """Rank 0 broadcasts every 3 ms without waiting; rank 1 gets one every 6 ms, for 3 of which it waits."""
    compute_s, moving_s, num = 3e-3, 6e-3, 10
    size = round(moving_s * BANDWIDTH)
    root, other = ([_call(-1.0, 0.0, INIT)] for _ in range(2))
    for k in range(num):
        root.append(_call((k + 1) * compute_s, (k + 1) * compute_s, BCAST, size=size, peer=0))
        there_s = compute_s + (k + 1) * moving_s
        other.append(_call(there_s - (moving_s if k == 0 else compute_s), there_s, BCAST, size=size, peer=0))
    end_s = compute_s + num * moving_s
    root.append(_call(num * compute_s, end_s + 1, FINALIZE))
    other.append(_call(end_s, end_s + 1, FINALIZE))
    folder = recordings.on_disk(tmp_path / "rec", 2, [])
    for rank, rows in enumerate((root, other)):
        (folder / f"rank-{rank}.trace").write_bytes(recordings.trace_file(rows, 100))
    monkeypatch.chdir(tmp_path)
    Profile({"inter_node": level("inter_node")}, "p").save("p.json")
    of = ("program", "rec", "--profile", "p.json", "--layout", "2x1x1")
    predict = ("predict", *of, "--set", "inter_node.bandwidth=4x")
    status, out, err = run_main(*predict, "--trace", "run.json", "--aggregate", "--partitions", "4", "--json")
    assert status == 0, err
    found = json.loads(out)
    assert any("5.72 MiB by linear: messages that leave the root" in note for note in found["notes"])
    assert found["as_recorded_s"] == pytest.approx(end_s, rel=0.01)
    assert found["simulated_s"] == pytest.approx(num * compute_s + moving_s / 4, rel=0.01)
    lines = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    assert sum(line["ph"] == "X" and line["name"] == "MPI_Bcast" for line in lines) == 2 * num
    status, _, err = run_main(*predict, "--algorithm", "bcast=linear", "--window", "4ms..40ms")
    assert status == 0 and "leave the root" not in err
    status, out, _ = run_main("advise", *of, "--json")
    assert status == 0 and any("leave the root" in note for note in json.loads(out)["notes"])
