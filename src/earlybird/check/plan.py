"""The points that a check measures, and how long that takes at most."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import Any

from earlybird.check.tournament import num_rounds
from earlybird.data.errors import InputError
from earlybird.data.labels import counted
from earlybird.data.units import format_bytes, format_seconds

DEFAULT_BUDGET_S = 120.0
MIN_ITERATIONS, AGAIN_ITERATIONS = 6, 12
AGAIN = 3  # a suspicion gets so many times the time of a first measurement
BATCH = 20  # round trips of small messages that are timed together

# Of more nodes a sample of the pairs is measured, in which each node meets _SAMPLED_ROUNDS others; also of
# fewer if the budget is too short for all, but not of few.
MAX_MEASURED, _SAMPLED_ROUNDS, _MIN_SAMPLED = 500, 24, 64
_SEED = 1
_MAX_POINT_S = 0.25
_MIN_BYTES, _MAX_BYTES = 16 << 10, 1 << 20
_LARGEST_GIVEN_BYTES = 512 << 20  # that of an incast of two nodes has twice as many, which MPI must count
# Of a network that is not known. A slower one takes longer than planned.
_ASSUMED_BYTES_PER_S, _ASSUMED_LATENCY_S = 1e9 / 8, 50e-6
# Bytes that a node receives in an incast, in messages of the tournament.
_CAST_MESSAGES = 2
_MIN_CAST_BYTES = 1 << 10
# To start the ranks.
_START_S, _START_OF_NODE_S = 3.0, 0.02
_COMPUTE_S, _COMPUTE_ITERATIONS = 25e-3, 7  # as native/kernels/check.cpp, with the start of threads
_DESCRIPTION_S = 0.2  # facts and clocks of all nodes, once
_BARRIER_LATENCIES = 2  # of each step of a barrier, which synchronizes all ranks before each iteration


@dataclass(frozen=True)
class CheckPlan:
    """A plan of what to measure of `nodes` nodes.

    Attributes
    ----------
    size_bytes, cast_bytes : size of messages between two nodes, and of those of incasts and outcasts.
    point_s : the time for each round, incast and outcast; MIN_ITERATIONS are measured in any case.
    bandwidth_bytes_per_s, latency_s : values of the slowest network for which the times hold.
    shared_machine : the nodes are virtual ones and share the cores of one machine.
    facts : whether nodes can be described, which simulated ones cannot.
    sampled_rounds, sampled_roots : number of rounds and incasts in the measured random sample, without
        outcasts; 0 if all are measured, with outcasts.
    """

    nodes: int
    size_bytes: int
    cast_bytes: int
    point_s: float
    bandwidth_bytes_per_s: float
    latency_s: float
    shared_machine: bool = False
    facts: bool = True
    sampled_rounds: int = 0
    sampled_roots: int = 0

    @property
    def rounds(self) -> int:
        return self.sampled_rounds or num_rounds(self.nodes)

    @property
    def casts(self) -> int:
        """The number of incasts and outcasts together."""
        return self.sampled_roots or 2 * self.nodes

    def points(self, mpi: str) -> list[dict[str, Any]]:
        """Return all points of a first launch, in the order in which they are measured."""
        if not self.sampled_rounds:
            return self.chosen(mpi, range(self.rounds), range(self.nodes))
        random = Random(_SEED)
        rounds = random.sample(range(num_rounds(self.nodes)), self.sampled_rounds)
        return self.chosen(mpi, sorted(rounds), sorted(random.sample(range(self.nodes), self.sampled_roots)))

    def chosen(self, mpi: str, rounds: Iterable[int], roots: Iterable[int]) -> list[dict[str, Any]]:
        """Return the points of these rounds and roots, then that of the nodes themselves."""
        common = {"mpi": mpi, "nodes": self.nodes}
        pairs = {"part": "pairs", "size_bytes": self.size_bytes, "batch": BATCH}
        points: list[dict[str, Any]] = [common | pairs | {"round": number} for number in rounds]
        for root in roots:
            for part in ("incast",) if self.sampled_rounds else ("incast", "outcast"):
                points.append(common | {"part": part, "root": root, "size_bytes": self.cast_bytes})
        if self.facts:
            points.append(common | {"part": "nodes", "shared_machine": int(self.shared_machine)})
        return points

    def round_s(self) -> float:
        """Return the longest time of a round of the tournament."""
        message_s = self.latency_s + self.size_bytes / self.bandwidth_bytes_per_s
        of_iteration_s = 2 * (BATCH + 1) * self.latency_s + 3 * message_s + 2 * self.latency_s
        return self._point_s(of_iteration_s)

    def cast_s(self) -> float:
        """Return the longest time of an incast or outcast."""
        bytes_of_root = (self.nodes - 1) * self.cast_bytes
        return self._point_s(2 * self.latency_s + bytes_of_root / self.bandwidth_bytes_per_s)

    def _point_s(self, of_iteration_s: float) -> float:
        # One more than is counted, to connect; the last iterations may begin when the time is over.
        of_iteration_s += _BARRIER_LATENCIES * max(self.nodes - 1, 1).bit_length() * self.latency_s
        least_s = (MIN_ITERATIONS + 1) * of_iteration_s
        return max(least_s, self.point_s + of_iteration_s)

    def require_stall_limit(self, stall_limit_s: float) -> None:
        """Raise InputError if a point may take longer than the stall limit of the check."""
        longest_s = self.longest_point_s()
        if longest_s > stall_limit_s:
            raise InputError(
                f"one round or incast takes up to {format_seconds(round(longest_s, 1))} and --stall-limit is "
                f"{format_seconds(stall_limit_s)}; give a longer --stall-limit, or a smaller --size"
            )

    def longest_point_s(self) -> float:
        return max(self.round_s(), self.cast_s(), self._nodes_s())

    def start_s(self) -> float:
        return _START_S + _START_OF_NODE_S * self.nodes

    def total_s(self) -> float:
        """Return the longest time of a first launch."""
        return self.start_s() + self._messages_s() + self._nodes_s()

    def _messages_s(self) -> float:
        return self.rounds * self.round_s() + self.casts * self.cast_s()

    def _nodes_s(self) -> float:
        computing_s = _COMPUTE_ITERATIONS * _COMPUTE_S * (self.nodes if self.shared_machine else 1)
        return _DESCRIPTION_S + computing_s if self.facts else 0.0

    def again(self, num_points: int) -> tuple[float, int]:
        """Return the seconds and iterations of each of `num_points` that are measured again, in the time of a
        first launch."""
        share_s = self._messages_s() / max(num_points, 1)
        is_enough = share_s > 2 * max(self.round_s(), self.cast_s())
        iterations = AGAIN_ITERATIONS if is_enough else MIN_ITERATIONS
        return min(AGAIN * self.point_s, share_s), iterations

    def sentence(self) -> str:
        """Return what is measured and for how long, without a full stop."""
        rounds, pairs = counted(self.rounds, "round"), counted(self.nodes // 2, "pair")
        casts = f"{self.nodes} incasts and outcasts"
        if self.sampled_rounds:
            rounds = f"a random sample, {self.rounds} of {num_rounds(self.nodes)} rounds"
            casts = f"{self.sampled_roots} of {self.nodes} incasts"
        return (
            f"checking {self.nodes} nodes: {rounds} of {pairs} with messages of "
            f"{format_bytes(self.size_bytes)}, {casts}; at most "
            f"{format_seconds(round(self.total_s()))}, and as long again if something is suspicious"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the plan for `--plan --json`."""
        return {
            "nodes": self.nodes, "rounds": self.rounds, "all_rounds": num_rounds(self.nodes),
            "pairs_per_round": self.nodes // 2, "incasts": self.sampled_roots or self.nodes,
            "outcasts": 0 if self.sampled_rounds else self.nodes, "size_bytes": self.size_bytes,
            "cast_bytes": self.cast_bytes, "first_launch_s": self.total_s(),
            "longest_s": 2 * self.total_s(), "sentence": self.sentence(),
        }  # fmt: skip

    def of_fewer(self, nodes: int) -> "CheckPlan":
        """Return a plan with the same messages between fewer nodes, with all rounds."""
        cast_bytes = _cast_bytes(self.size_bytes, nodes)
        if nodes > MAX_MEASURED:
            return replace(self, nodes=nodes, cast_bytes=cast_bytes)
        return replace(self, nodes=nodes, cast_bytes=cast_bytes, sampled_rounds=0, sampled_roots=0)


def _cast_bytes(size_bytes: int, nodes: int) -> int:
    return max(_CAST_MESSAGES * size_bytes // max(nodes - 1, 1), _MIN_CAST_BYTES)


def make_plan(
    nodes: int,
    budget_s: float = DEFAULT_BUDGET_S,
    *,
    size_bytes: int | None = None,
    bandwidth_bytes_per_s: float | None = None,
    latency_s: float | None = None,
    shared_machine: bool = False,
    facts: bool = True,
) -> CheckPlan:
    """Return the plan with the largest messages that `budget_s` allows, at most 1 MiB; for more than
    `MAX_MEASURED` nodes, and if it does not allow all pairs, with a sample of the pairs and incasts.

    Half of the budget is for a second launch. Raises InputError for fewer than two nodes, for a size of zero
    or beyond the counts of MPI, and for a budget that is too short for the smallest messages, or for
    `size_bytes` if given.
    """
    if nodes < 2:
        raise InputError(
            f"a check compares nodes with each other and this job has {counted(nodes, 'node')}; give at "
            "least two with --hosts, --launcher srun in an allocation of several nodes, or "
            "--launcher cluster:NAME"
        )
    if size_bytes is not None and not 1 <= size_bytes <= _LARGEST_GIVEN_BYTES:
        raise InputError(
            f"--size is {format_bytes(size_bytes)}; give 1B to {format_bytes(_LARGEST_GIVEN_BYTES)}"
        )
    bandwidth = bandwidth_bytes_per_s or _ASSUMED_BYTES_PER_S
    latency = latency_s if latency_s is not None else _ASSUMED_LATENCY_S
    sizes = [size_bytes] if size_bytes is not None else _sizes()
    samples = [False] * (nodes <= MAX_MEASURED) + [True] * (nodes > _MIN_SAMPLED)
    for is_sampled, size in product(samples, sizes):
        bare = CheckPlan(
            nodes, size, _cast_bytes(size, nodes), 0.0, bandwidth, latency, shared_machine, facts
        )
        if is_sampled:
            bare = _sampled(bare, budget_s / 2)
        points = bare.rounds + bare.casts
        left_s = budget_s / 2 - bare.total_s()
        is_long = size_bytes is None and size > sizes[-1] and bare.round_s() > _MAX_POINT_S
        if left_s >= 0 and not is_long:
            # The fewest iterations are measured in any case; what is left is shared.
            return replace(bare, point_s=min(_MAX_POINT_S, left_s / points))
    raise InputError(
        f"a check of {nodes} nodes takes {format_seconds(2 * bare.total_s())} with messages of "
        f"{format_bytes(sizes[-1])} and the second measurement, but --budget is {format_seconds(budget_s)}; "
        "give more time, or fewer nodes"
    )


def _sampled(plan: CheckPlan, budget_s: float) -> CheckPlan:
    """Return the plan with a sample of rounds, and as many incasts as the budget allows."""
    rounds = replace(plan, sampled_rounds=_SAMPLED_ROUNDS, sampled_roots=1)
    spare_s = (budget_s - rounds.total_s()) / 2  # the other half is for more iterations
    roots = 1 + int(max(spare_s, 0.0) / plan.cast_s())
    return replace(rounds, sampled_roots=min(roots, plan.nodes))


def _sizes() -> list[int]:
    sizes, size = [], _MAX_BYTES
    while size >= _MIN_BYTES:
        sizes.append(size)
        size //= 2
    return sizes
