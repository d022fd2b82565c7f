"""Time and memory of simulating windows of a long recording, and messages per second of a core.

The recording is made here, not recorded: ranks of one node in a ring exchange with both neighbours by
non-blocking messages, and then allreduce eight bytes, for 30 minutes; ranks compute for uneven times. It
takes 1.1 GB in --folder, ten times as much with --calls 100000000. Commands are `earlybird predict program
REC --window A..B --json`.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.commands import say, watched
from bench.predictor import assumed_profile
from earlybird.data.layout import parse_layout
from earlybird.data.profile import profile_from_json
from earlybird.data.recorded_rank import CALL, RECEIVED, SENT
from earlybird.data.recorded_trace import COMPLETION, MESSAGE, ONE_CALL
from earlybird.data.recording import load_recording
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.render.terminal import print_rows
from earlybird.record.conditions import conditions_as_recorded, simulate_run
from earlybird.record.operations import operations_of
from earlybird.record.window import parse_window
from tests import recordings
from tests.recordings import (
    ALLREDUCE,
    FINALIZE,
    INIT,
    IRECV,
    ISEND,
    TICKS_PER_S,
    TRACED,
    WAITALL,
    ZERO_TICKS,
)

RANKS, CALLS, RUN_S = 8, 10**7, 1800.0
CALLS_OF_A_STEP, MESSAGES_OF_A_STEP = 6, 2
SIZE_BYTES, WORLD, TAG = 4096, 1, 7
TIMES = ("900s..902s", "900s..918s", "900s..990s")
MAX_OF_CALLS = 10_000
# What a rank does in a step, in parts of it.
COMPUTES, POSTS, MEETS = 0.5, 0.02, 0.9
_STEPS_AT_ONCE = 1 << 16
# (call, role, kind, peer, bytes, request of the step) of each record of a step, in the order of its calls.
_STEP = (
    (IRECV, CALL, ONE_CALL, -1, 0, 1), (IRECV, CALL, ONE_CALL, 1, 0, 2),
    (ISEND, SENT, ONE_CALL, 1, SIZE_BYTES, 3), (ISEND, SENT, ONE_CALL, -1, SIZE_BYTES, 4),
    (WAITALL, CALL, ONE_CALL, 0, 0, 0),
    (IRECV, RECEIVED, MESSAGE, -1, SIZE_BYTES, 1), (IRECV, RECEIVED, MESSAGE, 1, SIZE_BYTES, 2),
    (ISEND, SENT, COMPLETION, 1, SIZE_BYTES, 3), (ISEND, SENT, COMPLETION, -1, SIZE_BYTES, 4),
    (ALLREDUCE, CALL, ONE_CALL, 0, 8, 0),
)  # fmt: skip
WAIT = 4


def main(arguments: Sequence[str] = ()) -> int:
    """Print the table of windows, and the messages per second."""
    parser = argparse.ArgumentParser(prog="python -m bench simulated-windows", description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS, help="of all ranks; default: %(default)s")
    parser.add_argument(
        "--folder", type=Path, help="where the recording is made; default: that of temporary files"
    )
    options = parser.parse_args(list(arguments))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        recording, profile = Path(folder) / "rec", Path(folder) / "profile.json"
        profile.write_text(json.dumps(assumed_profile(0)))
        begin_s = time.perf_counter()
        steps = options.calls // RANKS // CALLS_OF_A_STEP
        write_recording(recording, steps, RUN_S)
        size = sum(path.stat().st_size for path in recording.glob("*.trace"))
        say(f"made {options.calls:.3g} calls in {format_seconds(time.perf_counter() - begin_s)}")
        print(f"{options.calls:.3g} calls, {RANKS * len(_STEP) * steps:.3g} events, {format_bytes(size)}")
        rows = []
        calls = f"MPI_Allreduce:{steps // 2}..{steps // 2 + min(MAX_OF_CALLS, steps // 2)}"
        for window in (*TIMES, calls):
            took = watched(
                "predict", "program", recording, "--profile", profile, "--layout", f"1x1x{RANKS}",
                "--window", window, "--json",
            )  # fmt: skip
            rows.append([window, *_speed(recording, window), format_seconds(took.elapsed_s),
                         format_seconds(took.processor_s), format_bytes(took.memory_bytes)])  # fmt: skip
            say(f"{window}: done")
        print_rows(
            ["window", "calls", "messages", "simulated per second", "command", "processor", "memory"], rows,
            left=["window"],
        )  # fmt: skip
    return 0


def _speed(recording: Path, window: str) -> list[str]:
    """Calls and messages of a window, and the messages per second that the simulation alone takes."""
    operations = operations_of(load_recording(recording), parse_window(window))
    given = conditions_as_recorded(
        operations, profile_from_json(assumed_profile(0)), parse_layout(f"1x1x{RANKS}", "core")
    )
    begin_s = time.process_time()
    simulate_run(operations, given)
    took_s = time.process_time() - begin_s
    num = len(operations.bytes)
    return [f"{operations.num_calls:.3g}", f"{num:.3g}", f"{num / took_s:.3g}"]


def write_recording(
    folder: Path, num_steps: int, run_s: float, size_bytes: int = SIZE_BYTES, meets: bool = True
) -> None:
    """Write the recording of a ring of RANKS ranks that takes so many steps, with an allreduce in each if it
    `meets`."""
    recordings.start_recording(folder, {"command": ["mpiexec", "-n", str(RANKS), "./ring"]})
    for rank in range(RANKS):
        rows = recordings.entries(rank, [], 0.1)
        (folder / f"rank-{rank}.ebr").write_bytes(recordings.rank_file(rank, RANKS, rows))
        _write_trace(folder / f"rank-{rank}.trace", rank, num_steps, run_s, size_bytes, meets)


def _write_trace(path: Path, rank: int, num_steps: int, run_s: float, size_bytes: int, meets: bool) -> None:
    num = (len(_STEP) - (not meets)) * num_steps + 2
    step_s = run_s / num_steps
    with path.open("wb") as file:
        file.write(recordings.trace_head(num, num, run_s))
        _whole_call(INIT, -1.0, 0.0).tofile(file)
        for first in range(0, num_steps, _STEPS_AT_ONCE):
            steps = np.arange(first, min(first + _STEPS_AT_ONCE, num_steps))
            rows = _steps(rank, steps, step_s)
            rows["bytes"][rows["bytes"] == SIZE_BYTES] = size_bytes
            (rows if meets else rows[:, :-1]).tofile(file)
        _whole_call(FINALIZE, run_s, run_s + 0.1).tofile(file)


def _whole_call(call: int, begin_s: float, end_s: float) -> np.ndarray:
    row = np.zeros(1, TRACED)
    row["turn"], row["call"], row["what"] = 1, call, CALL << 24 | ONE_CALL << 28
    row["peer"] = row["tag"] = -1
    row["begin_ticks"] = ZERO_TICKS + round(begin_s * TICKS_PER_S)
    row["ticks"] = round((end_s - begin_s) * TICKS_PER_S)
    return row


def _posted_s(rank: int, steps: np.ndarray, step_s: float) -> np.ndarray:
    """When a rank posts its messages, in parts of a step: it computes for another time in each."""
    uneven = np.sin(0.7 * steps + 1.9 * (rank % RANKS)) ** 2
    return (steps + COMPUTES * (0.6 + 0.4 * uneven)) * step_s


def _steps(rank: int, steps: np.ndarray, step_s: float) -> np.ndarray:
    rows = np.zeros((len(steps), len(_STEP)), TRACED)
    rows["turn"] = 1
    posted_s = _posted_s(rank, steps, step_s)
    last_s = np.maximum.reduce([_posted_s(rank + shift, steps, step_s) for shift in (-1, 0, 1)])
    done_s = last_s + 5 * POSTS * step_s
    all_posted_s = np.maximum.reduce([_posted_s(of, steps, step_s) for of in range(RANKS)])
    meets_s = np.maximum(done_s + POSTS * step_s, (steps + MEETS) * step_s - 0.2 * (all_posted_s - posted_s))
    for k, (call, role, kind, shift, size, request) in enumerate(_STEP):
        row = rows[:, k]
        begin_s = posted_s + k * POSTS * step_s
        end_s = begin_s + POSTS * step_s / 2
        if WAIT <= k < len(_STEP) - 1:
            begin_s, end_s = posted_s + 4 * POSTS * step_s, done_s
        if call == ALLREDUCE:
            begin_s, end_s = meets_s, (steps + MEETS + 0.05) * step_s
        row["call"], row["bytes"] = call, size
        is_message = kind == MESSAGE or role == SENT
        row["what"] = (0 if call == WAITALL else WORLD) | role << 24 | kind << 28
        row["peer"] = (rank + shift) % RANKS if shift else -1
        row["tag"] = TAG if is_message else -1
        row["request"] = (4 * steps + request) if request else 0
        row["begin_ticks"] = ZERO_TICKS + np.round(begin_s * TICKS_PER_S).astype(np.uint64)
        row["ticks"] = np.round((end_s - begin_s) * TICKS_PER_S).astype(np.uint64)
        if kind in (MESSAGE, COMPLETION):
            at_s = posted_s + (request - 1) * POSTS * step_s
            row["posted_ticks"] = ZERO_TICKS + np.round(at_s * TICKS_PER_S).astype(np.uint64)
    return rows
