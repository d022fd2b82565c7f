"""Time-independent traces of recorded runs: what each rank does between its calls, and in which order."""

import re

import pytest

from earlybird.data.errors import InputError
from earlybird.data.recording import load_recording
from earlybird.record.operations import operations_of
from earlybird.record.replay_trace import INDEX, write_replay_trace
from tests.python.record.test_simulation import END_S, MEET_S, SENT_S, recorded  # noqa: F401

FLOPS_PER_S = 1e9


def _lines(folder, rank):
    return (folder / f"rank-{rank}.txt").read_text().splitlines()


def test_actions_are_those_of_the_run_with_the_time_between_them(recorded, tmp_path):  # noqa: F811
    made = write_replay_trace(operations_of(load_recording(recorded())), tmp_path / "trace")
    index = (tmp_path / "trace" / INDEX).read_text().splitlines()
    assert index == [str(tmp_path / "trace" / f"rank-{rank}.txt") for rank in range(2)]
    sender, receiver = (_lines(tmp_path / "trace", rank) for rank in range(2))
    assert (made.num_actions, made.num_kept) == (len(sender) + len(receiver), 0)
    is_compute = re.compile(r"[01] compute [0-9.e+]+")
    assert [line for line in sender if not is_compute.fullmatch(line)] == [
        "0 init", "0 isend 1 0 1000", "0 wait 0 1 0", "0 allreduce 8 0", "0 finalize",
    ]  # fmt: skip
    assert [line for line in receiver if not is_compute.fullmatch(line)] == [
        "1 init", "1 irecv 0 0 1000", "1 wait 0 1 0", "1 allreduce 8 0", "1 finalize",
    ]  # fmt: skip
    first = float(sender[1].split()[2]) / FLOPS_PER_S
    assert first == pytest.approx(SENT_S, abs=1e-8)
    computed_s = sum(float(line.split()[2]) for line in sender if is_compute.fullmatch(line)) / FLOPS_PER_S
    # Neither the call that sends nor the collective, which the simulator has its own times for.
    assert MEET_S - 2e-4 < computed_s < END_S


def test_an_existing_folder_is_refused(recorded, tmp_path):  # noqa: F811
    with pytest.raises(InputError, match="exists already"):
        write_replay_trace(operations_of(load_recording(recorded())), tmp_path)
