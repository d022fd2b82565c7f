"""Layouts of an exchange: usual orders of ranks, a partition of its graph, and one improved by swaps."""

import itertools
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from earlybird.advise.predicted import SlowestRank, ranked, uncertain_gains
from earlybird.data.advice import Advice
from earlybird.data.exchange_models import KEPT
from earlybird.data.layout import Layout
from earlybird.data.levels import MAPPINGS
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Profile
from earlybird.predict.changing import MAX_RANKS
from earlybird.predict.exchange import Predictor

PARTITIONED, IMPROVED = "partitioned", "improved"
SWAPS = 20_000
COUNT, BUDGET, INTERRUPT = "count", "budget", "interrupt"
# Annealing begins where a loss of this share of the time is accepted once in e times, and ends at the second.
_FIRST_LOSS, _LAST_LOSS = 0.02, 1e-4


@dataclass(frozen=True)
class Swaps:
    """The number of swaps of two ranks to try, and the time limit.

    Attributes
    ----------
    count : number of swaps; None for as many as `budget_s` allows.
    budget_s : seconds after which no further swap is tried; None for no limit.
    """

    count: int | None = SWAPS
    budget_s: float | None = None
    seed: int = 1

    def share(self, done: int, spent_s: float) -> float:
        """Return the completed share of the annealing; by the count where there is one, as that gives the
        same layout again.
        """
        if self.count is not None:
            return done / max(self.count, 1)
        return spent_s / self.budget_s if self.budget_s else 1.0

    def left_s(self, done: int, spent_s: float) -> float:
        """Return the time that is left, after `done` swaps in `spent_s`."""
        of_budget_s = math.inf if self.budget_s is None else self.budget_s - spent_s
        of_count_s = math.inf if self.count is None else spent_s / max(done, 1) * (self.count - done)
        return max(min(of_budget_s, of_count_s), 0.0)


@dataclass(frozen=True)
class Improved:
    """The best layout after `done` swaps; `ended_by` is COUNT, BUDGET or INTERRUPT."""

    layout: Layout
    done: int
    ended_by: str


# Called after each swap with: those done, the seconds spent, and the slowest rank's best time.
OnSwap = Callable[[int, float, float], None]


@dataclass(frozen=True)
class AdvisedLayout:
    """The advice, and the layout of each alternative by its name."""

    advice: Advice
    layouts: dict[str, Layout]


def advise_layout(
    pattern: Pattern,
    profile: Profile,
    orders: Mapping[str, Layout],
    *,
    model: str | None = None,
    swaps: Swaps = Swaps(),
    on_swap: OnSwap | None = None,
) -> AdvisedLayout:
    """Rank layouts with the places of `orders` by the time of the slowest rank that `model` predicts.

    The default model is the one with which the exchange on the reference is predicted. `orders` are the
    layouts that launchers make of the same nodes, by their `--map-by`; the first is the reference. Swaps of
    two ranks are judged by the model KEPT, whose time is known at once after a swap, starting from the best
    of the other layouts by it; the result is listed if `model` predicts less time than for that layout, too.
    An interrupt ends the swaps; the best layout until then counts. Raises InputError as `Predictor` does.
    """
    map_by = next(iter(orders))
    shape = orders[map_by].text.partition(" by ")[0]
    layouts = _distinct(orders)
    pattern.check_ranks(layouts[map_by].num_ranks)
    profile_alone = Profile(profile.levels, profile.id)
    chosen = Predictor(pattern, layouts[map_by]).choose_model(profile, model)
    model = chosen.name
    layouts = _distinct(layouts | {PARTITIONED: partitioned_layout(pattern, layouts[map_by])})
    drawn = {name: SlowestRank.of(pattern, one, profile, model) for name, one in layouts.items()}
    notes, extra = [], dict[str, Any](chosen.to_json())
    if layouts[map_by].num_ranks > MAX_RANKS:
        notes.append(f"there is no layout {IMPROVED}, because swaps are for at most {MAX_RANKS} ranks")
    elif swaps.count != 0:
        begin = {name: Predictor(pattern, one).slowest_now_s(profile_alone) for name, one in layouts.items()}
        start = min(begin, key=begin.__getitem__)
        improved = improved_layout(pattern, profile_alone, layouts[start], swaps, on_swap)
        extra |= {"swaps": improved.done, "swaps_ended_by": improved.ended_by}
        notes += _early_end(improved, swaps)
        then = SlowestRank.of(pattern, improved.layout, profile, model)
        if then.time_s < drawn[start].time_s:
            layouts, drawn = layouts | {IMPROVED: improved.layout}, drawn | {IMPROVED: then}
        else:
            notes.append(
                f"there is no layout {IMPROVED}, because no tried swap of two ranks made the layout {start} "
                f"faster by {' and '.join(dict.fromkeys((KEPT.name, model)))}"
            )
    notes = [*_reservations(pattern, layouts, profile, model), *notes, *uncertain_gains(drawn, map_by)]
    return AdvisedLayout(_advice(drawn, map_by, shape, model, notes, profile.id, extra), layouts)


def _early_end(improved: Improved, swaps: Swaps) -> list[str]:
    """Return a note that the layout would not be the same again, if the swaps ended early."""
    if improved.ended_by == COUNT:
        return []
    done = f"{improved.done} swaps" if swaps.count is None else f"{improved.done} of {swaps.count} swaps"
    if improved.ended_by == INTERRUPT:
        return [f"interrupted after {done}: the best layout until then counts"]
    return [
        f"--budget ended the search after {done}, so that the same command may give another layout; --swaps "
        "without --budget always gives the same"
    ]


def _reservations(
    pattern: Pattern, layouts: dict[str, Layout], profile: Profile, model: str
) -> Sequence[str]:
    """Return `Predictor.reservations` of all layouts, with the names of the layouts where not all have it."""
    of_note: dict[str, list[str]] = {}
    for name, one in layouts.items():
        for said in Predictor(pattern, one).reservations(profile, model):
            of_note.setdefault(said, []).append(name)
    return [
        said if len(names) == len(layouts) else f"layout {', '.join(names)}: {said}"
        for said, names in of_note.items()
    ]


def partitioned_layout(pattern: Pattern, places: Layout) -> Layout:
    """Assign ranks to the places of `places`, so that those that exchange many bytes share a node, by METIS.

    Ranks of a node fill its sockets in their order. The parts of METIS differ by some ranks from the number
    of places; ranks that exchange least with their part move to others.
    """
    import pymetis

    num_ranks = places.num_ranks
    nodes, capacity = np.unique(places.node, return_counts=True)
    if len(nodes) == 1:
        return places
    weight = _exchanged(pattern, num_ranks)
    graph = pymetis.CSRAdjacency(weight.indptr, weight.indices)
    _, parts = pymetis.part_graph(len(nodes), graph, eweights=weight.data, recursive=False)
    part = np.array(parts)
    _balance(part, weight, capacity)
    slots = [np.flatnonzero(places.node == node) for node in nodes]
    node, socket = np.empty(num_ranks, np.int64), np.empty(num_ranks, np.int64)
    for k, own in enumerate(slots):
        ranks = np.flatnonzero(part == k)
        node[ranks], socket[ranks] = places.node[own], np.sort(places.socket[own])
    return Layout(node, socket, f"{places.text}, {PARTITIONED}")


def _exchanged(pattern: Pattern, num_ranks: int):
    """Return the bytes between each two ranks in both directions, as a symmetric CSR matrix of small
    integers.
    """
    from scipy.sparse import coo_array

    size = pattern.bytes + 1.0
    one_way = coo_array((size, (pattern.src, pattern.dst)), shape=(num_ranks, num_ranks))
    both = (one_way + one_way.T).tocsr()
    both.sum_duplicates()
    both.data = np.maximum(np.rint(both.data * (1e5 / max(both.data.max(initial=1.0), 1.0))), 1).astype(
        np.int32
    )
    return both


def _balance(part: np.ndarray, weight, capacity: np.ndarray) -> None:
    """Move ranks from parts with more than their `capacity` to others, those that lose least first."""
    count = np.bincount(part, minlength=len(capacity))
    while (over := np.flatnonzero(count > capacity)).size:
        room = np.flatnonzero(count < capacity)
        best = (math.inf, -1, -1)
        for rank in np.flatnonzero(part == over[0]).tolist():
            row = slice(weight.indptr[rank], weight.indptr[rank + 1])
            by_part = np.bincount(part[weight.indices[row]], weight.data[row], len(capacity))
            to = int(room[np.argmax(by_part[room])])
            best = min(best, (float(by_part[over[0]] - by_part[to]), rank, to))
        _, rank, to = best
        count[part[rank]] -= 1
        count[to] += 1
        part[rank] = to


def improved_layout(
    pattern: Pattern, profile: Profile, start: Layout, swaps: Swaps, on_swap: OnSwap | None = None
) -> Improved:
    """Return `start` after swaps of two ranks: annealing of the slowest rank's time, by the staircase."""
    place = list(zip(start.node.tolist(), start.socket.tolist(), strict=True))
    if len(set(place)) < 2 or not len(pattern.src):
        return Improved(start, 0, COUNT)
    predictor = Predictor(pattern, start)
    search = _Search(predictor, profile, place, _peers(pattern, start.num_ranks), random.Random(swaps.seed))
    done, begin_s, ended_by = 0, time.monotonic(), COUNT
    try:
        while swaps.count is None or done < swaps.count:
            spent_s = time.monotonic() - begin_s
            if swaps.budget_s is not None and spent_s >= swaps.budget_s:
                ended_by = BUDGET
                break
            search.try_swap(swaps.share(done + 1, spent_s))
            done += 1
            if on_swap is not None:
                on_swap(done, spent_s, search.best_s)
    except KeyboardInterrupt:
        ended_by = INTERRUPT
    node, socket = np.array(search.best, dtype=np.int64).T
    layout = Layout(node.copy(), socket.copy(), f"{start.text.partition(', ')[0]}, {IMPROVED}")
    return Improved(layout, done, ended_by)


class _Search:
    """A simulated annealing; `best` is the place of each rank in the layout with the time `best_s`."""

    def __init__(
        self,
        predictor: Predictor,
        profile: Profile,
        place: list[tuple[int, int]],
        peers: list[list[int]],
        chosen: random.Random,
    ):
        self._predictor, self._profile = predictor, profile
        self._place, self._peers, self._chosen = place, peers, chosen
        self._ranks_at: dict[tuple[int, int], list[int]] = {}
        for rank, where in enumerate(place):
            self._ranks_at.setdefault(where, []).append(rank)
        self._now_s = self.best_s = self._begin_s = predictor.slowest_now_s(profile)
        self._slowest = predictor.slowest_rank_now()
        self.best = list(place)

    def try_swap(self, share: float) -> None:
        """Try one swap after this share of the search."""
        place, chosen = self._place, self._chosen
        slowest, peers = self._slowest, self._peers
        a = slowest if chosen.random() < 0.3 else _any_near(slowest, peers, chosen, len(place))
        # A place where a peer of the rank is, or any.
        there = place[chosen.choice(peers[a])] if peers[a] and chosen.random() < 0.7 else chosen.choice(place)
        if there == place[a]:
            return
        b = chosen.choice(self._ranks_at[there])
        self._predictor.update({a: place[b], b: place[a]})
        then_s = self._predictor.slowest_now_s(self._profile)
        temperature_s = self._begin_s * _FIRST_LOSS * (_LAST_LOSS / _FIRST_LOSS) ** share
        loss_s = then_s - self._now_s
        if loss_s > 0 and chosen.random() >= math.exp(-loss_s / max(temperature_s, 1e-300)):
            self._predictor.update({a: place[a], b: place[b]})
            return
        _swap(a, b, place, self._ranks_at)
        self._now_s, self._slowest = then_s, self._predictor.slowest_rank_now()
        if then_s < self.best_s:
            self.best, self.best_s = list(place), then_s


def _peers(pattern: Pattern, num_ranks: int) -> list[list[int]]:
    """Return the ranks with which each rank exchanges messages."""
    keys = np.concatenate([pattern.src * num_ranks + pattern.dst, pattern.dst * num_ranks + pattern.src])
    src, dst = np.divmod(np.unique(keys), num_ranks)
    first = np.searchsorted(src, np.arange(num_ranks + 1))
    return [dst[begin:end].tolist() for begin, end in itertools.pairwise(first)]


def _any_near(rank: int, peers: Sequence[Sequence[int]], chosen: random.Random, num_ranks: int) -> int:
    """Return a peer of the rank, or any rank."""
    if peers[rank] and chosen.random() < 0.5:
        return chosen.choice(peers[rank])
    return chosen.randrange(num_ranks)


def _swap(a: int, b: int, place: list[tuple[int, int]], ranks_at: dict[tuple[int, int], list[int]]) -> None:
    for one, other in ((a, b), (b, a)):
        own = ranks_at[place[one]]
        own[own.index(one)] = other
    place[a], place[b] = place[b], place[a]


def _distinct(layouts: Mapping[str, Layout]) -> dict[str, Layout]:
    kept: dict[str, Layout] = {}
    for name, one in layouts.items():
        is_new = all(
            not (np.array_equal(one.node, other.node) and np.array_equal(one.socket, other.socket))
            for other in kept.values()
        )
        if is_new:
            kept[name] = one
    return kept


def _advice(
    drawn: dict[str, SlowestRank],
    reference: str,
    shape: str,
    model: str,
    notes: Sequence[str],
    profile_id: str,
    extra: Mapping[str, Any],
) -> Advice:
    actions = {name: f"--map-by {name}" if name in MAPPINGS else f"the layout {name}" for name in drawn}
    work = {
        name: (-1 if name == reference else MAPPINGS.index(name) if name in MAPPINGS else len(MAPPINGS),)
        for name in drawn
    }
    return Advice(
        "layout",
        {"layout": shape, "model": model},
        reference,
        ranked(drawn, reference, actions, work),
        profile_id=profile_id,
        notes=tuple(notes),
        extra=extra,
    )
