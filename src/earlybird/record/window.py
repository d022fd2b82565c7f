"""Windows of a recorded run: which part of it is simulated, by time or by calls of a collective."""

import re
from dataclasses import dataclass

import numpy as np

from earlybird.analysis.events import COLLECTIVES
from earlybird.analysis.waits import Traced
from earlybird.data import labels
from earlybird.data.errors import InputError
from earlybird.data.recorded_rank import CALL
from earlybird.data.recording import Recording
from earlybird.data.units import format_bytes, format_seconds, parse_duration, shortened

_MOMENTS, _CALLS = "2s..5s or 2s..", "MPI_Allreduce:10..20"
_NUMBERS = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})")


@dataclass(frozen=True)
class Window:
    """A part of a run.

    Attributes
    ----------
    text : as the user gave it.
    from_s, until_s : seconds since the first MPI_Init returned.
    call, first, last : instead, from the `first` call of a collective until the `last` one has returned, of
        all that each rank made, from 1; empty for seconds.
    """

    text: str
    from_s: float = 0.0
    until_s: float = np.inf
    call: str = ""
    first: int = 0
    last: int = 0


def parse_window(text: str) -> Window:
    """Parse `2s..5s` or `MPI_Allreduce:10..20`; raise InputError."""
    return _of_calls(text) if ":" in text else _of_seconds(text)


def _of_calls(text: str) -> Window:
    given = f"--window is {shortened(text)}"
    call, _, span = text.strip().partition(":")
    if call not in COLLECTIVES:
        raise InputError(
            f"{given}, and {shortened(call)} is no blocking collective; give calls of one, such as {_CALLS}, "
            f"or seconds, such as {_MOMENTS}"
        )
    numbers = _NUMBERS.fullmatch(span)
    if not numbers or not int(numbers[1]):
        raise InputError(f"{given}; give the first and the last call, counted from 1 on, such as {_CALLS}")
    first, last = int(numbers[1]), int(numbers[2])
    if first > last:
        raise InputError(f"{given}; give the earlier call first, such as {_CALLS}")
    return Window(text, call=call, first=first, last=last)


def _of_seconds(text: str) -> Window:
    given = f"--window is {shortened(text)}"
    begin, dots, end = text.partition("..")
    if not dots:
        raise InputError(
            f"{given}; give two moments of the run, such as {_MOMENTS}, or calls of a blocking collective, "
            f"such as {_CALLS}"
        )
    from_s = parse_duration(begin, "the beginning of --window", "2s or 0.5") if begin.strip() else 0.0
    until_s = parse_duration(end, "the end of --window", "5s or 0.5") if end.strip() else np.inf
    if from_s >= until_s:
        raise InputError(f"{given}, which ends where it begins or before; give {_MOMENTS}, for example")
    return Window(text, from_s, until_s)


@dataclass(frozen=True, eq=False)
class Cut:
    """Where the simulated part of a run begins and ends on each rank, (P,) by the clock of the events; it
    ends at infinity on ranks that are simulated until their MPI_Finalize."""

    from_s: np.ndarray
    until_s: np.ndarray


def require_known_begin(window: Window, has_dropped: bool) -> None:
    if has_dropped:
        raise InputError(
            f"--window is {window.text}, and how long after MPI_Init events are is not known, since older "
            "ones were overwritten; give calls of a collective, or leave --window out"
        )


def num_overwritten(recording: Recording, window: Window, num: np.ndarray) -> np.ndarray:
    """Return how many calls of the window's collective each rank made before the oldest of the `num` that are
    in its events, which have older ones overwritten: (P,)."""
    total = np.zeros_like(num)
    for rank, one in recording.ranks.items():
        is_it = np.array([name.removesuffix("_c") == window.call for name in one.calls], bool)
        rows = one.entries[is_it[one.entries["call"]] & (one.entries["role"] == CALL)]
        total[rank] = rows["calls"].sum()
    return np.maximum(total - num, 0)


def require_calls(window: Window, before: np.ndarray, num: np.ndarray) -> None:
    """Raise InputError if a rank has not all calls of the window in its events, with `num` calls of each rank
    after the `before` that were overwritten, both (P,)."""
    if (before + num).min() < window.last:
        rank = int((before + num).argmin())
        raise InputError(
            f"--window is {window.text}, and rank {rank} has made "
            f"{labels.counted(int((before + num)[rank]), 'call')} of {window.call}; give calls that every "
            "rank makes"
        )
    if before.max() >= window.first:
        rank = int(before.argmax())
        raise InputError(
            f"--window is {window.text}, and of rank {rank} the events of the first "
            f"{labels.counted(int(before[rank]), 'call')} of {window.call} were overwritten; give later "
            "calls, or record with --events all"
        )


def too_large(window: Window, num: int, bytes_per_event: int, free_bytes: int) -> InputError:
    """Return the error for a window whose events do not fit into memory, with one that does if the events are
    spread evenly over it."""
    needed, share = num * bytes_per_event, free_bytes / (num * bytes_per_event)
    if window.call:
        last = window.first + max(int((window.last - window.first + 1) * share) - 1, 0)
        fitting = f"{window.call}:{window.first}..{last}"
    elif np.isfinite(window.until_s):
        fitting = fitting_window(window.from_s, (window.until_s - window.from_s) * share)
    else:
        fitting = f"a window of {100 * share:.2g} % of this one"
    return InputError(
        f"--window {window.text} has {num} events, whose simulation takes about {format_bytes(needed)} of "
        f"memory, and {format_bytes(free_bytes)} are available; give {fitting}, which fits if events are "
        "spread evenly, or use a machine with more memory"
    )


def fitting_window(from_s: float, duration_s: float) -> str:
    """Return the option for a window of so many seconds, rounded down to two digits."""
    step = 10.0 ** (np.floor(np.log10(max(duration_s, 1e-9))) - 1)
    duration_s = np.floor(duration_s / step) * step
    return f"--window {from_s:g}s..{from_s + duration_s:.6g}s"


def cut_of(
    window: Window, recording: Recording, joined: Traced, begun_s: np.ndarray, ended_s: np.ndarray
) -> Cut:
    """Return the cut of a run whose ranks began at `begun_s` and end at `ended_s`, (P,); raise InputError for
    what is not in the run."""
    whole_s = joined.whole_from_s
    first_s, last_s = float(begun_s.min()), float(ended_s.max())
    if window.call:
        cut = _cut_of_calls(window, recording, joined)
    else:
        require_known_begin(window, bool(np.isfinite(whole_s)))
        if first_s + window.from_s >= last_s:
            raise InputError(
                f"--window is {window.text}, and the run ends after {format_seconds(last_s - first_s)}; give "
                "a window that begins earlier"
            )
        until_s = np.full(len(begun_s), first_s + window.until_s)
        cut = Cut(np.maximum(begun_s, first_s + window.from_s), np.where(until_s < last_s, until_s, np.inf))
    if cut.from_s.min() < whole_s:
        raise InputError(
            f"--window is {window.text}, and events before it were overwritten; give later calls, or record "
            "with --events all"
        )
    return cut


def _cut_of_calls(window: Window, recording: Recording, joined: Traced) -> Cut:
    events = joined.events
    calls = np.flatnonzero(events.is_call(frozenset({window.call})) & (events.calls > 0))
    calls = calls[np.lexsort([events.begin_s[calls], events.rank[calls]])]
    num = np.bincount(events.rank[calls], minlength=recording.size)
    before = joined.num_before
    if before is None:
        before = np.zeros_like(num) if joined.reaches_back else num_overwritten(recording, window, num)
        require_calls(window, before, num)
    begins = np.concatenate([[0], np.cumsum(num)[:-1]]) - before
    first, last = (calls[begins + number - 1] for number in (window.first, window.last))
    return Cut(events.begin_s[first], events.end_s[last])
