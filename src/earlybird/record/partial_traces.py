"""Reads the part of the traces of a recording that a window of its run needs.

The files are read in blocks: for a window of calls first to find it; then the events of the window are kept,
and then those that are matched in the same order as these are counted. So a window needs memory for its own
events only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from earlybird.analysis.clocks import Clocks
from earlybird.analysis.events import Counted, Matching
from earlybird.analysis.waits import Traced, join_traces, traced
from earlybird.data import memory
from earlybird.data.recorded_rank import CALL
from earlybird.data.recorded_trace import (
    ONE_CALL,
    THREAD,
    RankTrace,
    TraceFile,
    open_traces,
    role_and_kind,
)
from earlybird.data.recording import Recording
from earlybird.record.window import (
    Window,
    num_overwritten,
    require_calls,
    require_known_begin,
    too_large,
)

_INIT, _FINALIZE = frozenset({"MPI_Init", "MPI_Init_thread"}), frozenset({"MPI_Finalize"})
# Events before and after a window that are kept, too: clocks of hosts drift by up to so much of a run.
_MARGIN_S, _DRIFT = 1e-3, 1e-4
_CLOCK_RECORDS = 1 << 18  # of each rank, by which clocks of hosts are compared before a window is chosen
# Of the place of an event among those like it, in one number with the number of what is like it.
_ORDER_BITS = 40


@dataclass(frozen=True)
class _Span:
    """What is kept of a rank: from and until ticks of its counter."""

    from_ticks: int
    until_ticks: int


@dataclass(frozen=True, eq=False)
class _Kept:
    """The events of a rank that are kept, or only their number, and how many calls of the window's collective
    come before them."""

    rows: np.ndarray
    numbers: np.ndarray
    num: int
    num_in_file: int
    num_before: int


def traced_window(recording: Recording, window: Window, bytes_per_event: int) -> Traced | None:
    """Return the joined events of a window, with MPI_Init and MPI_Finalize; None if there are no events.

    Raises InputError for a window that is not in the run, and for one whose events do not fit into memory if
    each takes `bytes_per_event`.
    """
    opened = open_traces(recording)
    matching = Matching(recording)
    if opened is None or not matching.has_keys:  # of the former version
        return traced(recording)
    if not any(len(file) for file in opened.values()):
        return None
    is_dropped = any(file.has_dropped for file in opened.values())
    if not window.call:
        require_known_begin(window, is_dropped)
    clocks = _clocks_before(recording, opened)
    num_before = np.zeros(recording.size, np.int64)
    if window.call:
        num_before = _num_overwritten(recording, opened, window)
        spans = _spans_of_calls(recording, opened, window, num_before)
    else:
        spans = _spans_of_times(recording, opened, window, clocks)
    free = memory.available_memory_bytes()
    kept: dict[int, _Kept] = {}
    num_left = free // bytes_per_event
    for rank, file in opened.items():
        kept[rank] = _kept(recording.ranks[rank].calls, file, spans.get(rank), window.call, num_left)
        num_left -= kept[rank].num
        num_before[rank] += kept[rank].num_before
    if num_left < 0:
        raise too_large(window, sum(one.num for one in kept.values()), bytes_per_event, free)
    traces = {
        rank: file.trace(kept[rank].rows, kept[rank].numbers, kept[rank].num_in_file - kept[rank].num)
        for rank, file in opened.items()
    }
    counted = {rank: _counted(matching, rank, file, kept[rank]) for rank, file in opened.items()}
    return join_traces(recording, traces, Counted.of(counted), num_before, clocks)


def _ids(calls: tuple[str, ...], names: frozenset[str]) -> np.ndarray:
    """Return whether each call of a rank, with or without the `_c` of large counts, is in `names`."""
    return np.array([name.removesuffix("_c") in names for name in calls], bool)


def _clocks_before(recording: Recording, opened: Mapping[int, TraceFile]) -> Clocks | None:
    """Return the clocks of the hosts by the first events of the run, or the last ones if the first have been
    overwritten; None if all ranks have one clock."""
    if len({one.boot or one.host for one in recording.ranks.values()}) < 2:
        return None
    from_end = any(file.has_dropped for file in opened.values())
    traces: dict[int, RankTrace] = {}
    for rank, file in opened.items():
        chosen: list[tuple[np.ndarray, np.ndarray]] = []
        for block in file.blocks():
            chosen.append(block)
            held = sum(len(rows) for rows, _ in chosen)
            while from_end and held - len(chosen[0][0]) >= _CLOCK_RECORDS:
                held -= len(chosen.pop(0)[0])
            if not from_end and held >= _CLOCK_RECORDS:
                break
        if chosen:
            rows, numbers = (np.concatenate(column) for column in zip(*chosen, strict=True))
            # All others are left out here, which makes these count from the end of the run that they reach.
            traces[rank] = file.trace(rows, numbers, 0 if from_end else file.num - len(rows))
    return join_traces(recording, traces).clocks


def _calls_of(recording: Recording, rank: int, file: TraceFile, call: str) -> Iterator[np.ndarray]:
    """Iterate over the records of a rank's calls of a collective, a block each."""
    is_it = _ids(recording.ranks[rank].calls, frozenset({call}))
    for rows, _ in file.blocks():
        calls = rows[is_it[rows["call"]]]
        role, kind = role_and_kind(calls)
        yield calls[(role == CALL) & (kind == ONE_CALL)]


def _num_overwritten(recording: Recording, opened: Mapping[int, TraceFile], window: Window) -> np.ndarray:
    """Return how many calls of a window's collective were overwritten, (P,)."""
    num = np.zeros(recording.size, np.int64)
    has_dropped = np.zeros(recording.size, bool)
    for rank, file in opened.items():
        has_dropped[rank] = file.has_dropped
        if file.has_dropped:
            num[rank] = sum(len(calls) for calls in _calls_of(recording, rank, file, window.call))
    return np.where(has_dropped, num_overwritten(recording, window, num), 0)


def _spans_of_calls(
    recording: Recording, opened: Mapping[int, TraceFile], window: Window, before: np.ndarray
) -> dict[int, _Span]:
    """Return the spans from the first to the last call of the collective of a window, `before` the first of
    which so many calls were overwritten, (P,). Raises InputError for a window that is not in the run."""
    spans, has_made = {}, np.zeros_like(before)
    for rank, file in opened.items():
        num, from_ticks, until_ticks = int(before[rank]), 0, 0
        for calls in _calls_of(recording, rank, file, window.call):
            first, last = (number - 1 - num for number in (window.first, window.last))
            if 0 <= first < len(calls):
                from_ticks = int(calls["begin_ticks"][first])
            if 0 <= last < len(calls):
                until_ticks = int(calls["begin_ticks"][last] + calls["ticks"][last])
            num += len(calls)
            if num >= window.last:
                break
        has_made[rank] = num
        margin = round(_MARGIN_S / file.tick_s)
        spans[rank] = _Span(max(from_ticks - margin, 0), until_ticks + margin)
    require_calls(window, before, has_made - before)
    return spans


def _spans_of_times(
    recording: Recording, opened: Mapping[int, TraceFile], window: Window, clocks: Clocks | None
) -> dict[int, _Span]:
    """Return the spans of a window of seconds since the first MPI_Init returned."""
    ahead_s = {
        rank: float(np.nan_to_num(clocks.ahead_s.get(rank, 0.0))) if clocks else 0.0 for rank in opened
    }
    begun_s = []
    for rank, file in opened.items():
        is_init = _ids(recording.ranks[rank].calls, _INIT)
        for rows, numbers in file.blocks():
            found = is_init[rows["call"]]
            if found.any():
                begun_s.append(float(file.trace(rows[found], numbers[found], 0).end_s[0]) - ahead_s[rank])
                break
    if not begun_s:
        return {}
    margin_s = _MARGIN_S + (clocks.uncertainty_s + _DRIFT * recording.run_s if clocks else 0.0)
    from_s, until_s = min(begun_s) + window.from_s - margin_s, min(begun_s) + window.until_s + margin_s
    return {
        rank: _Span(
            file.ticks(from_s + ahead_s[rank]),
            file.ticks(until_s + ahead_s[rank]) if np.isfinite(until_s) else 2**63 - 1,
        )
        for rank, file in opened.items()
    }


def _kept(calls: tuple[str, ...], file: TraceFile, span: _Span | None, collective: str, most: int) -> _Kept:
    """Choose the events of a rank: those in the span, the first and the last one, MPI_Init and MPI_Finalize;
    if these are more than `most`, they are only counted."""
    is_end = _ids(calls, _INIT | _FINALIZE)
    is_collective = _ids(calls, frozenset({collective}))
    span = span or _Span(0, -1)
    rows_of: list[np.ndarray] = []
    numbers_of: list[np.ndarray] = []
    num = num_in_file = num_before = 0
    latest: tuple[np.ndarray, np.ndarray] | None = None
    for rows, numbers in file.blocks():
        end_ticks = rows["begin_ticks"] + rows["ticks"]
        is_kept = (end_ticks >= span.from_ticks) & (rows["begin_ticks"] <= max(span.until_ticks, 0))
        is_kept &= span.until_ticks >= 0
        is_kept |= is_end[rows["call"]]
        is_kept[0] |= num_in_file == 0
        if collective:
            role, kind = role_and_kind(rows)
            counts = is_collective[rows["call"]] & (role == CALL) & (kind == ONE_CALL)
            num_before += int((counts & ~is_kept & (end_ticks < span.from_ticks)).sum())
        num_in_file += len(rows)
        num += int(is_kept.sum())
        latest = None if is_kept[-1] else (rows[-1:], numbers[-1:])
        if num <= most:
            rows_of.append(rows[is_kept])
            numbers_of.append(numbers[is_kept])
    if latest is not None:
        num += 1
        rows_of.append(latest[0])
        numbers_of.append(latest[1])
    if num > most or not rows_of:
        return _Kept(file.no_records, np.empty(0, np.uint64), num, num_in_file, num_before)
    return _Kept(np.concatenate(rows_of), np.concatenate(numbers_of), num, num_in_file, num_before)


def _counted(matching: Matching, rank: int, file: TraceFile, kept: _Kept) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each event of the MPI that is kept, how many of the rank's events that are matched in one
    order with it precede it in this order, and how many there are."""
    before, total = np.zeros((2, len(kept.rows)), np.int64)
    is_of_mpi = role_and_kind(kept.rows)[1] != THREAD
    place, key, order = matching.keys(rank, kept.rows, kept.numbers)
    if not len(place):
        return before[is_of_mpi], total[is_of_mpi]
    wanted, number = np.unique(key, return_inverse=True)
    number = number.reshape(-1)
    # Behind the events with one key comes what counts those after them.
    ends = np.arange(len(wanted))
    code = np.concatenate([number << _ORDER_BITS | order, ends << _ORDER_BITS | (1 << _ORDER_BITS) - 1])
    by_code = np.argsort(code)
    code = code[by_code]
    first = np.searchsorted(code, ends << _ORDER_BITS)
    last = np.append(first[1:], len(code)) - 1
    least, most = code[first], code[np.maximum(last - 1, first)]
    counts = np.zeros(len(code), np.int64)
    for rows, numbers in file.blocks():
        _, key, order = matching.keys(rank, rows, numbers)
        of_key = np.minimum(np.searchsorted(wanted, key), len(wanted) - 1)
        is_wanted = wanted[of_key] == key
        of_key, order = of_key[is_wanted], order[is_wanted]
        own = of_key << _ORDER_BITS | order
        is_before, is_after = own < least[of_key], own >= most[of_key]
        counts += np.bincount(first[of_key[is_before]], minlength=len(code))
        counts += np.bincount(last[of_key[is_after]], minlength=len(code))
        among = own[~is_before & ~is_after]
        if len(among):
            counts += np.bincount(np.searchsorted(code, among, side="right"), minlength=len(code))
    sums = np.cumsum(counts)
    base = np.concatenate([[0], sums])[first]
    where = np.empty(len(code), np.int64)
    where[by_code] = np.arange(len(code))
    at = where[: len(place)]
    before[place] = sums[at] - base[number]
    total[place] = sums[last[number]] - base[number]
    return before[is_of_mpi], total[is_of_mpi]
