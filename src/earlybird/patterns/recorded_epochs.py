"""The exchanges of a recorded phase: what all ranks sent in its single epochs, and how often that was."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.phases import Phase
from earlybird.data.rank_file import AGAIN
from earlybird.data.recorded_rank import CONCURRENT, GOT, PUT, RECEIVED, SENT, EpochSamples, RankRecording
from earlybird.data.recording import PairTotals, Recording
from earlybird.patterns.recorded import RecordedExchange, exchange_of


class RecordedExchanges:
    """The distinct exchanges of a phase, the most frequent one first.

    Each exchange is that of a real epoch: epoch j of every rank. A rank may have another number of epochs
    only if all its epochs are alike.

    Attributes
    ----------
    epochs : number of epochs of the ranks whose epochs differ, else the median over ranks.
    sampled : int64 (S,), indices from 0 of the epochs that were kept; the index of the first one if all are
        alike.
    counts : int64 (K,), number of the kept epochs that had each exchange.
    num_unequal : number of pairs of ranks whose messages have mean sizes, because only the sum over all
        epochs is known.
    least_epochs, most_epochs : smallest and largest number of epochs of a rank that sends.
    """

    def __init__(
        self,
        epochs: int,
        sampled: np.ndarray,
        exchange_of_sample: np.ndarray,
        totals_of: Callable[[int], PairTotals],
        *,
        combined: bool = False,
        num_unequal: int = 0,
        epochs_of_ranks: Collection[int] = (),
    ):
        counts = np.bincount(exchange_of_sample)
        first = np.full(len(counts), len(sampled))
        np.minimum.at(first, exchange_of_sample, np.arange(len(sampled)))
        order = np.lexsort([first, -counts])
        self.epochs, self.sampled, self.counts = epochs, sampled, counts[order]
        self.num_unequal = num_unequal
        self.least_epochs = min(epochs_of_ranks, default=epochs)
        self.most_epochs = max(epochs_of_ranks, default=epochs)
        self._first, self._number = first[order], np.argsort(order)[exchange_of_sample]
        self._totals_of, self._combined = totals_of, combined

    def __len__(self) -> int:
        return len(self.counts)

    def exchange(self, number: int) -> RecordedExchange:
        """Return the exchange of this number, from 0. Raises InputError for too many messages."""
        pattern, left_out = exchange_of(
            self._totals_of(int(self._first[number])), combined=self._combined
        )  # fmt: skip
        return RecordedExchange(pattern, left_out, self.num_unequal)

    def epoch_of(self, number: int) -> int:
        """Return the index of the first epoch that was kept with this exchange."""
        return int(self.sampled[self._first[number]])

    def number_of(self, epoch: int) -> int:
        """Return the number of the exchange of the epoch with this index. Raises InputError if that epoch was
        not kept.
        """
        if not 0 <= epoch < self.epochs:
            raise InputError(f"there are epochs 1 to {self.epochs}, given is {epoch + 1}; give one of them")
        if len(self) == 1:
            return 0
        place = int(np.searchsorted(self.sampled, epoch))
        if place == len(self.sampled) or self.sampled[place] != epoch:
            next_to = ", ".join(
                str(kept + 1) for kept in self.sampled[max(place - 1, 0) : place + 1].tolist()
            )
            raise InputError(
                f"epoch {epoch + 1} is not among the {len(self.sampled)} of {self.epochs} that were kept; "
                f"next to it is {next_to}"
            )
        return int(self._number[place])

    def drawn(self, most: int) -> list[tuple[int, float]]:
        """Return the numbers of exchanges and their shares of the epochs; if there are more than `most`
        exchanges, those of `most` epochs, drawn at random but equal in each call.
        """
        numbers, counts = np.arange(len(self)), self.counts
        if len(self) > most:
            chosen = np.random.default_rng(0).choice(len(self.sampled), most, replace=False)
            numbers, counts = np.unique(self._number[chosen], return_counts=True)
        return list(zip(numbers.tolist(), (counts / counts.sum()).tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class _Series:
    """The messages of a rank in the epochs of a phase.

    Attributes
    ----------
    epochs : number of epochs of the rank.
    sampled, variant : (S,) indices of epochs, and the places of their messages in `contents`.
    contents : int64 arrays (M, 4) of sender, receiver, messages and their bytes; one if all epochs are alike.
    num_unequal : number of pairs with mean sizes.
    """

    epochs: int
    sampled: np.ndarray
    variant: np.ndarray
    contents: tuple[np.ndarray, ...]
    num_unequal: int = 0

    @property
    def is_alike(self) -> bool:
        return len(self.contents) == 1

    def at(self, epoch: int) -> np.ndarray:
        """Return the messages of an epoch that is in `sampled`, or of any epoch if all are alike."""
        if self.is_alike:
            return self.contents[0]
        return self.contents[self.variant[np.searchsorted(self.sampled, epoch)]]

    def restricted(self, is_kept: Callable[[np.ndarray], np.ndarray], combined: bool) -> "_Series":
        """Return the series of the same epochs with only the messages that `is_kept` selects."""
        contents = [rows[is_kept(rows)] for rows in self.contents]
        return _series(self.epochs, self.sampled, self.variant, contents, combined)


def exchange_of_phase(
    recording: Recording, phase: Phase, *, combined: bool = False, one_sided: bool = False
) -> RecordedExchange:
    """Return the exchange of a phase whose epochs are alike. Raises InputError if they differ or are not
    known.

    `combined` and `one_sided` are those of `exchanges_of_phase`.
    """
    made = exchanges_of_phase(recording, phase, combined=combined, one_sided=one_sided)
    if len(made) > 1:
        raise InputError(
            f"phase {phase.number} has {len(made)} different exchanges; choose one of its epochs"
        )
    return made.exchange(0)


def exchanges_of_phase(
    recording: Recording, phase: Phase, *, combined: bool = False, one_sided: bool = False
) -> RecordedExchanges:
    """Return the distinct exchanges of a phase: the messages of all ranks in their epoch j, for each j that
    was kept.

    Messages of ranks whose epochs cannot be compared with those of the others, or that left no file, are
    those that the others received. `combined` gives one message for each pair. `one_sided` includes the data
    that MPI_Put, MPI_Get and similar calls moved, each call as a message. Raises InputError if single epochs
    are not known.
    """
    moved = (SENT, PUT, GOT) if one_sided else (SENT,)
    ranks = {rank: one for rank, one in recording.ranks.items() if rank in phase.of_ranks}
    senders = {rank: _of_rank(one, phase, moved, combined) for rank, one in ranks.items()}
    receivers = {rank: _of_rank(one, phase, (RECEIVED,), combined) for rank, one in ranks.items()}
    epochs = _common_epochs(senders.values()) or _common_epochs(receivers.values())
    known = {rank: series for rank, series in senders.items() if _is_comparable(series, epochs)}
    received = {rank: series for rank, series in receivers.items() if _is_comparable(series, epochs)}
    unknown = sorted((ranks.keys() - known.keys()) | set(recording.missing))
    others = [
        series.restricted(lambda rows: np.isin(rows[:, 0], unknown), combined)
        for series in received.values()
        if unknown
    ]
    own = [rank for rank in unknown if rank in ranks]
    if own and not _are_received(recording, phase, own, received, one_sided):
        raise InputError(_why_unknown(recording, phase, own[0], senders))
    series = [*known.values(), *(one for one in others if any(len(rows) for rows in one.contents))]
    varying = [one for one in series if not one.is_alike]
    sampled = np.zeros(1, np.int64)
    if varying:
        sampled = varying[0].sampled
        for one in varying[1:]:
            sampled = np.intersect1d(sampled, one.sampled)
        if not len(sampled):
            raise InputError(f"no epoch of phase {phase.number} is known on all ranks; {AGAIN}")
        _check_correspondence(recording, phase, known, received, sampled)
    variants = [one.variant[np.searchsorted(one.sampled, sampled)] for one in varying]
    exchange_of_sample = _distinct_columns(variants, len(sampled))

    def totals_of(place: int) -> PairTotals:
        rows = np.concatenate([np.empty((0, 4), np.int64), *(one.at(int(sampled[place])) for one in series)])
        src, dst, messages, size = rows[np.lexsort([rows[:, 1], rows[:, 0]])].T
        return PairTotals(src, dst, np.full_like(src, -1), messages, size)

    return RecordedExchanges(
        epochs if varying else phase.epochs, sampled, exchange_of_sample, totals_of, combined=combined,
        num_unequal=sum(one.num_unequal for one in series),
        epochs_of_ranks={one.epochs for one in series if any(len(rows) for rows in one.contents)},
    )  # fmt: skip


def _distinct_columns(rows: Sequence[np.ndarray], num: int) -> np.ndarray:
    """Return (num,) the number of the content of each column of `rows`."""
    if not rows:
        return np.zeros(num, np.int64)
    return np.unique(np.stack(rows), axis=1, return_inverse=True)[1].reshape(-1)


def _common_epochs(series: Collection[_Series | None]) -> int:
    """Return the most frequent number of epochs among the ranks whose epochs differ; 0 if there are none."""
    counts = Counter(one.epochs for one in series if one is not None and not one.is_alike)
    return max(counts, key=lambda epochs: (counts[epochs], epochs), default=0)


def _is_comparable(series: _Series | None, epochs: int) -> bool:
    return series is not None and (series.is_alike or series.epochs == epochs)


def _of_rank(one: RankRecording, phase: Phase, roles: Sequence[int], combined: bool) -> _Series | None:
    """Return the messages of `roles` of a rank in its epochs; None if they differ in an unknown way."""
    numbers = phase.of_ranks[one.rank]
    epochs = phase.epochs_of.get(one.rank, phase.epochs)
    rows = one.entries_of(numbers)
    rows = rows[np.isin(rows["role"], roles) & (rows["peer"] >= 0) & (rows["messages"] > 0)]
    if not len(rows):
        return _alike(epochs, [_columns(one.rank, rows)], combined)
    samples = [part for (number, _), part in one.epoch_samples.items() if number in numbers]
    if not samples:
        return _of_means(one.rank, rows, epochs, combined)
    if not all(part.is_complete and len(part.variants) for part in samples):
        return None
    messages = [_of_variants(one.rank, part.variants, roles) for part in samples]
    if len(samples) > 1 and not _are_in_step(one, numbers, samples):
        series = _alike(epochs, list(chain(*messages)), combined)
        return series if series.is_alike else None
    sampled = samples[0].epochs
    places = [part.variant for part in samples]
    columns, variant = np.unique(np.stack(places), axis=1, return_inverse=True)
    contents = [
        np.concatenate([messages[k][place] for k, place in enumerate(column)])
        for column in columns.T.tolist()
    ]  # fmt: skip
    return _series(epochs, sampled, variant.reshape(-1), contents, combined)


def _are_in_step(one: RankRecording, numbers: Sequence[int], samples: Sequence[EpochSamples]) -> bool:
    """Return whether threads that call concurrently passed through the same phase equally often."""
    is_concurrent = one.thread_level == CONCURRENT
    are_alike = all(np.array_equal(part.epochs, samples[0].epochs) for part in samples)
    return len(numbers) == 1 and is_concurrent and are_alike


def _of_variants(rank: int, variants: Sequence[np.ndarray], roles: Sequence[int]) -> list[np.ndarray]:
    """Return the messages of `roles` in each variant."""
    number = np.repeat(np.arange(len(variants)), [len(rows) for rows in variants])
    rows = np.concatenate(variants)
    is_kept = np.isin(rows["role"], roles) & (rows["peer"] >= 0) & (rows["messages"] > 0)
    ends = np.cumsum(np.bincount(number[is_kept], minlength=len(variants)))
    return np.split(_columns(rank, rows[is_kept]), ends[:-1])


def _columns(rank: int, rows: np.ndarray) -> np.ndarray:
    """Return the sender, receiver, messages and bytes of entries of a rank."""
    is_from_peer = np.isin(rows["role"], (RECEIVED, GOT))
    own, peer = np.full(len(rows), rank), rows["peer"].astype(np.int64)
    return np.column_stack([
        np.where(is_from_peer, peer, own), np.where(is_from_peer, own, peer),
        rows["messages"].astype(np.int64), rows["bytes"].astype(np.int64),
    ])  # fmt: skip


def _series(
    epochs: int,
    sampled: np.ndarray,
    variant: np.ndarray,
    contents: Sequence[np.ndarray],
    combined: bool,
    num_unequal: int = 0,
) -> _Series:
    """Return a series with each of its distinct contents once."""
    numbers: dict[bytes, int] = {}
    distinct, number_of = [], []
    for rows in _in_order(contents, combined):
        key = rows.tobytes()
        if key not in numbers:
            numbers[key] = len(distinct)
            distinct.append(rows)
        number_of.append(numbers[key])
    return _Series(epochs, sampled, np.array(number_of)[variant], tuple(distinct), num_unequal)


def _alike(epochs: int, contents: Sequence[np.ndarray], combined: bool, num_unequal: int = 0) -> _Series:
    """Return the series of epochs with the same contents; if the contents differ, its `is_alike` is false."""
    first = np.zeros(1, np.int64)
    return _series(epochs, first, first, contents, combined, num_unequal)


def _in_order(contents: Sequence[np.ndarray], combined: bool) -> list[np.ndarray]:
    """Return the messages with one row for each pair and size, or for each pair if `combined`, in order."""
    number = np.repeat(np.arange(len(contents)), [len(rows) for rows in contents])
    rows = np.concatenate([np.empty((0, 4), np.int64), *contents])
    size = np.where(rows[:, 3] % rows[:, 2], -1 - np.arange(len(rows)), rows[:, 3] // rows[:, 2])
    keys = np.column_stack([number, rows[:, :2], 0 * size if combined else size])
    order = np.lexsort(keys.T[::-1])
    keys, rows = keys[order], rows[order]
    is_first = np.ones(len(keys), bool)
    is_first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    number = keys[is_first, 0]
    if not is_first.all():
        sums = np.add.reduceat(rows[:, 2:], np.flatnonzero(is_first), axis=0)
        rows = np.column_stack([rows[is_first, :2], sums])
    # Sizes that are no whole number were kept apart in the order of the program.
    rows = rows[np.lexsort([*rows.T[::-1], number])]
    return np.split(rows, np.cumsum(np.bincount(number, minlength=len(contents)))[:-1])


def _of_means(rank: int, rows: np.ndarray, epochs: int, combined: bool) -> _Series | None:
    """Return what every epoch sends if all send as much to the same rank; None if this is not certain.

    Each of several peers may belong to different epochs, even if the number of epochs divides the messages of
    all. For messages of a pair whose sizes differ between epochs, the mean size is used.
    """
    epochs = max(epochs, 1)
    peers = np.unique(rows[["role", "peer"]])["role"]
    if epochs > 1 and len(np.unique(peers)) < len(peers):
        return None
    keys, place = np.unique(rows[["role", "peer", "size_class"]], return_inverse=True)
    sums = np.zeros((len(keys), 2), np.int64)
    np.add.at(sums, place.reshape(-1), np.column_stack([rows["messages"], rows["bytes"]]).astype(np.int64))
    pairs, pair = np.unique(keys[["role", "peer"]], return_inverse=True)
    pair = pair.reshape(-1)
    is_divided = np.ones(len(pairs), bool)
    np.logical_and.at(is_divided, pair, sums[:, 0] % epochs == 0)
    # Messages of one pair in several size classes, of which an epoch has the one or the other.
    group = np.where(is_divided[pair], np.arange(len(keys)), len(keys) + pair)
    _, first, place = np.unique(group, return_index=True, return_inverse=True)
    joined = np.zeros((len(first), 2), np.int64)
    np.add.at(joined, place.reshape(-1), sums)
    if (joined[:, 0] % epochs).any():
        return None
    is_unequal = (joined[:, 1] % epochs != 0) | ~is_divided[pair[first]]
    of_epoch = np.zeros(len(first), rows.dtype)
    for name in ("role", "peer"):
        of_epoch[name] = keys[first][name]
    of_epoch["messages"], of_epoch["bytes"] = joined[:, 0] // epochs, np.rint(joined[:, 1] / epochs)
    return _alike(epochs, [_columns(rank, of_epoch)], combined, int(is_unequal.sum()))


def _are_received(
    recording: Recording,
    phase: Phase,
    unknown: Sequence[int],
    received: Mapping[int, _Series],
    one_sided: bool,
) -> bool:
    """Return whether the receives of the ranks in `received` in the phase are all that `unknown` send in
    it.
    """
    sent, taken = recording.sent(phase.of_ranks).by_pair(), recording.received(phase.of_ranks).by_pair()
    if one_sided:
        moved = recording.one_sided(phase.of_ranks)
        if np.isin([*moved.src, *moved.dst], unknown).any():
            return False
    own, others = np.isin(sent.src, unknown), np.isin(taken.src, unknown) & np.isin(taken.dst, list(received))
    return all(
        np.array_equal(getattr(sent, name)[own], getattr(taken, name)[others])
        for name in ("src", "dst", "messages")
    )


def _why_unknown(recording: Recording, phase: Phase, rank: int, senders: Mapping[int, _Series | None]) -> str:
    one, series = recording.ranks[rank], senders[rank]
    what = f"the messages of phase {phase.number} differ between its epochs"
    samples = [part for (number, _), part in one.epoch_samples.items() if number in phase.of_ranks[rank]]
    if series is None and not samples:
        return (
            f"the messages of phase {phase.number} may differ between its epochs, and this recording keeps "
            f"only their sums; {AGAIN}"
        )
    if not all(part.is_complete for part in samples):
        return f"{what}, and rank {rank} had too many different ones to keep, or one without an end"
    return (
        f"{what}, and those of rank {rank}, which went through it {phase.epochs_of[rank]} times, cannot be "
        "compared with those of other ranks"
    )


def _check_correspondence(
    recording: Recording,
    phase: Phase,
    known: Mapping[int, _Series],
    received: Mapping[int, _Series],
    sampled: np.ndarray,
) -> None:
    """Raise InputError if ranks receive what others sent in another epoch of the phase."""
    sent, taken = recording.sent(phase.of_ranks).by_pair(), recording.received(phase.of_ranks).by_pair()
    totals = {(src, dst): messages for src, dst, messages in _pair_rows(sent)}
    # A pair as one number.
    pairs = np.unique([
        src * recording.size + dst
        for src, dst, messages in _pair_rows(taken)
        if totals.get((src, dst)) == messages
        and src in known and dst in received and known[src].epochs == received[dst].epochs
    ]).astype(np.int64)  # fmt: skip
    series = [*known.values(), *received.values()]
    for one in received.values():
        if not one.is_alike:
            sampled = np.intersect1d(sampled, one.sampled)
    variants = [
        one.variant[np.searchsorted(one.sampled, sampled)] for one in series if not one.is_alike
    ]  # fmt: skip
    # Epochs that are alike on all ranks need one comparison.
    distinct = np.unique(_distinct_columns(variants, len(sampled)), return_index=True)[1]
    for epoch in sampled[np.sort(distinct)].tolist():
        counts = [_messages(part, epoch, pairs, recording.size) for part in (known, received)]
        if not np.array_equal(*counts):
            raise InputError(
                f"the epochs of phase {phase.number} do not correspond on all ranks: what is sent in one is "
                f"received in another, first in epoch {epoch + 1}; call MPI_Pcontrol between the steps of "
                f"the program, and {AGAIN}"
            )


def _pair_rows(totals: PairTotals) -> Iterable[tuple[int, int, int]]:
    return zip(totals.src.tolist(), totals.dst.tolist(), totals.messages.tolist(), strict=True)


def _messages(series: Mapping[int, _Series], epoch: int, pairs: np.ndarray, size: int) -> np.ndarray:
    """Return (P,) the number of messages of each of `pairs`, as numbers src * size + dst in order, in an
    epoch.
    """
    rows = np.concatenate([np.empty((0, 4), np.int64), *(one.at(epoch) for one in series.values())])
    pair = rows[:, 0] * size + rows[:, 1]
    is_wanted = np.isin(pair, pairs)
    counts = np.zeros(len(pairs), np.int64)
    np.add.at(counts, np.searchsorted(pairs, pair[is_wanted]), rows[is_wanted, 2])
    return counts


def which_epoch(phase: int, exchanges: RecordedExchanges, number: int, epoch: int | None) -> str:
    """Return a description of the epoch that is written, and of how many others have the same messages."""
    epochs, kept = exchanges.epochs, len(exchanges.sampled)
    if len(exchanges) == 1:
        least, most = exchanges.least_epochs, exchanges.most_epochs
        count = f"there were {epochs}" if least == most else f"ranks had {least} to {most}"
        return f"one epoch of phase {phase}, of which {count}"
    known = f"{epochs} epochs" if kept == epochs else f"the {kept} of {epochs} epochs that were kept"
    is_most_frequent = number == 0 and exchanges.counts[0] > 1
    which = f"epoch {exchanges.epoch_of(number) + 1 if epoch is None else epoch}"
    return (
        f"{known} of phase {phase} have {len(exchanges)} different exchanges; this is that of {which}, "
        f"{'the most frequent one, ' if is_most_frequent else ''}which {exchanges.counts[number]} have; give "
        "--epoch for another one"
    )
