"""The verdict on what a recorder adds: differences per call, and the ratio of the ping-pong."""

import numpy as np
import pytest

from bench.recorder_cost import CALLS, PING_PONG, main, report, report_trace

ALONE = np.full((3, len(CALLS)), 1e-6)


def longer(name, by_s):
    recorded = ALONE.copy()
    recorded[:, list(CALLS).index(name)] += by_s
    return recorded


@pytest.mark.parametrize(
    ("name", "by_s", "is_met"),
    [
        ("MPI_Iprobe", 99e-9, True),
        ("MPI_Iprobe", 101e-9, False),
        ("MPI_Isend, MPI_Irecv, MPI_Waitall", 297e-9, True),
        ("MPI_Isend, MPI_Irecv, MPI_Waitall", 303e-9, False),
        (PING_PONG, 19e-9, True),
        (PING_PONG, 21e-9, False),
    ],
)
def test_limits_are_those_of_a_call_and_of_the_ping_pong(name, by_s, is_met, capsys):
    assert report("mpich", ALONE, longer(name, by_s)) == is_met
    assert ("met" if is_met else "missed") in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(("by_s", "is_met"), [(59e-9, True), (61e-9, False)])
def test_a_trace_may_add_less_to_each_call(by_s, is_met, capsys):
    name = "512 MPI_Irecv, 512 MPI_Isend, MPI_Waitall"
    assert report_trace("mpich", ALONE, longer(name, CALLS[name] * by_s)) == is_met
    assert ("met" if is_met else "missed") in capsys.readouterr().out.splitlines()[-1]


def test_no_round_is_refused(capsys):
    assert main(["--rounds", "0"]) == 2
    assert "give 1 or more" in capsys.readouterr().err
