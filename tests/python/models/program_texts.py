"""Programs for tests, written as lists of operations by thread, and a plain simulation of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from earlybird.models.program import Network, Operation, Program, Semantics


@dataclass
class Written:
    """A program that a test writes down: operations of threads as tuples.

    ("compute", s), ("send", message, s), ("receive", message, s), ("enter", collective, s); these return
    their number in the thread, with which ("wait", numbers, s) and ("any", numbers, s) name them.
    """

    ranks: Sequence[int]
    threads: list[list[tuple]] = field(default_factory=list)
    messages: list[tuple[int, int]] = field(default_factory=list)  # bytes, class
    collectives: list[tuple[Semantics, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.threads = [[] for _ in self.ranks]

    def add(self, thread: int, *operation: Any) -> int:
        self.threads[thread].append(operation)
        return len(self.threads[thread]) - 1

    def message(self, size_bytes: int, message_class: int = 0) -> int:
        self.messages.append((size_bytes, message_class))
        return len(self.messages) - 1

    def collective(self, semantics: Semantics, root: int = 0) -> int:
        self.collectives.append((semantics, root))
        return len(self.collectives) - 1

    def send(self, thread: int, message: int, s: float = 0.0) -> None:
        """A blocking send."""
        self.add(thread, "wait", [self.add(thread, "send", message, s)], 0.0)

    def receive(self, thread: int, message: int, s: float = 0.0) -> None:
        """A blocking receive."""
        self.add(thread, "wait", [self.add(thread, "receive", message, s)], 0.0)

    def program(self) -> Program:
        kinds = {
            "compute": Operation.COMPUTE, "send": Operation.SEND, "receive": Operation.RECEIVE,
            "wait": Operation.WAIT_ALL, "any": Operation.WAIT_ANY, "enter": Operation.ENTER,
        }  # fmt: skip
        first = np.cumsum([0, *map(len, self.threads)])
        operation, seconds, argument, sets = [], [], [], []
        for begin, rows in zip(first, self.threads, strict=False):
            for kind, *values in rows:
                operation.append(kinds[kind])
                seconds.append(values[-1])
                argument.append(0 if kind == "compute" else values[0])
                if kind in ("wait", "any"):
                    argument[-1] = len(sets)
                    sets.append([begin + number for number in values[0]])
        return Program(
            max(self.ranks) + 1, np.array(self.ranks), first, np.array(operation, int), np.array(seconds),
            np.array(argument, int), np.cumsum([0, *map(len, sets)]),
            np.array([request for one in sets for request in one], int),
            np.array([size for size, _ in self.messages], int),
            np.array([kind for _, kind in self.messages], int),
            np.array([one for one, _ in self.collectives], int),
            np.array([root for _, root in self.collectives], int),
        )  # fmt: skip


def network(
    node: Sequence[int],
    bandwidth: Any = 1e9,
    latency: Any = 0.0,
    receive: Any = 0.0,
    between: Any = True,
    waits: Any = False,
    inside: Any = False,
    group: Sequence[int] | None = None,
    awaits: Any = False,
) -> Network:
    """The bandwidth is [n-1][class], or of all n and classes; the others are of classes, or of all."""
    table = np.atleast_2d(np.array(bandwidth, float))
    classes = table.shape[1]

    def of_classes(value: Any, kind: Any) -> np.ndarray:
        return np.broadcast_to(np.array(value, kind), (classes,))

    return Network(
        np.array(node), np.array(node if group is None else group), table, of_classes(latency, float),
        of_classes(receive, float), of_classes(between, bool), of_classes(waits, bool),
        of_classes(inside, bool), of_classes(awaits, bool),
    )  # fmt: skip


class PlainSimulation:
    """Steps from event to event, with all rates computed again at each: slow, and as the documentation says.

    Threads are states that try to go on whenever anything has happened.
    """

    def __init__(self, program: Program, on: Network):
        self.p, self.on, self.now = program, on, 0.0
        num = len(program.operation)
        self.end, self.done = [math.nan] * num, [math.nan] * num
        self.at, self.time = [int(k) for k in program.first[:-1]], [0.0] * len(program.thread_rank)
        self.paid = [False] * len(self.at)
        self.left: dict[int, float] = {}
        self.queued: list[int] = []  # behind others from the same rank to the same one
        self.begun, self.gone = (
            [math.nan] * len(program.message_bytes),
            [math.nan] * len(program.message_bytes),
        )
        self.op_of = {}
        self.rank_of = {}
        for t, rank in enumerate(program.thread_rank):
            for k in range(program.first[t], program.first[t + 1]):
                self.rank_of[k] = int(rank)
                if program.operation[k] in (Operation.SEND, Operation.RECEIVE):
                    self.op_of[int(program.operation[k]), int(program.argument[k])] = k
        self.matched: dict[int, int] = {}  # message -> how many ends still have to be inside
        self.outside_now, self.inside_at = [False] * len(self.at), [0.0] * len(self.at)

    def run(self) -> list[float]:
        while True:
            while self.go_on():
                pass
            rates = self.rates()
            ends = [self.now + self.left[m] / rates[m] for m in self.left]
            later = [t for t in self.moments() if t > self.now]
            if not ends and not later:
                return self.end
            until = min([*ends, *later])
            for m in list(self.left):
                ended = self.now + self.left[m] / rates[m] <= until * (1 + 1e-13)
                self.left[m] -= rates[m] * (until - self.now)
                if ended:
                    del self.left[m]
                    self.end_message(m, until)
            self.now = until
            self.take_turns()

    def moments(self):
        for t, k in enumerate(self.at):
            if k < self.p.first[t + 1] and self.time[t] > self.now:
                yield self.time[t]
        yield from (t for t in self.done if t == t)

    def end_message(self, m, now):
        self.gone[m] = now
        kind = self.p.message_class[m]
        if self.on.waits[kind]:
            self.done[self.op_of[1, m]] = now
        self.done[self.op_of[2, m]] = now + self.on.latency_s[kind]

    def awaits_receive(self, kind):
        return self.on.waits[kind] or self.on.awaits_receive[kind]

    def begin_message(self, m):
        self.begun[m] = self.now
        kind = self.p.message_class[m]
        if self.awaits_receive(kind) and not self.on.waits[kind]:
            self.done[self.op_of[1, m]] = self.now
        if self.is_behind(m, [*self.left, *self.queued]):
            self.queued.append(m)
        elif not self.p.message_bytes[m]:
            self.end_message(m, self.now)
        else:
            self.left[m] = float(self.p.message_bytes[m])

    def is_behind(self, m, others):
        """The messages from one rank to another follow each other."""

        def ends(of):
            return self.rank_of[self.op_of[1, of]], self.rank_of[self.op_of[2, of]]

        return ends(m) in map(ends, others)

    def take_turns(self):
        for m in list(self.queued):
            if not self.is_behind(m, [*self.left, *self.queued[: self.queued.index(m)]]):
                self.queued.remove(m)
                if self.p.message_bytes[m]:
                    self.left[m] = float(self.p.message_bytes[m])
                else:
                    self.end_message(m, self.now)

    def is_inside(self, rank):
        return any(
            not self.outside_now[t] or self.inside_at[t] == self.now
            for t, of in enumerate(self.p.thread_rank)
            if of == rank
        )

    def try_begin(self):
        moved = False
        for m, stage in list(self.matched.items()):
            kind = self.p.message_class[m]
            if self.on.starts_inside[kind]:
                if stage == 0 and self.is_inside(self.rank_of[self.op_of[2, m]]):
                    self.matched[m] = stage = 1
                if stage == 1 and self.is_inside(self.rank_of[self.op_of[1, m]]):
                    self.matched[m] = stage = 2
            else:
                stage = 2
            if stage == 2:
                del self.matched[m]
                self.begin_message(m)
                moved = True
        return moved

    def go_on(self):
        moved = self.try_begin()
        for t in range(len(self.at)):
            moved |= self.step(t)
        return moved

    def step(self, t):
        k = self.at[t]
        if k == self.p.first[t + 1] or self.time[t] > self.now:
            return False
        kind, cost = self.p.operation[k], float(self.p.operation_s[k])
        came_inside = self.outside_now[t] and kind != Operation.COMPUTE
        if came_inside:
            self.outside_now[t] = False
        if not self.outside_now[t]:
            self.inside_at[t] = self.now
        if kind in (Operation.COMPUTE, Operation.SEND, Operation.RECEIVE) and not self.paid[t]:
            self.paid[t] = True
            self.time[t] += cost
            if cost:
                self.outside_now[t] = kind == Operation.COMPUTE
                return True
        m = int(self.p.argument[k])
        if kind in (Operation.WAIT_ALL, Operation.WAIT_ANY):
            requests = self.p.set_requests[self.p.set_first[m] : self.p.set_first[m + 1]]
            known = [
                (max(self.done[r], self.end[r]), int(r))
                for r in requests
                if self.done[r] <= self.now and self.end[r] <= self.now
            ]
            if len(known) < (len(requests) if kind == Operation.WAIT_ALL else min(1, len(requests))):
                return came_inside
            for when, r in sorted(known)[: len(requests) if kind == Operation.WAIT_ALL else 1]:
                self.time[t] = max(self.time[t], when)
                if self.p.operation[r] == Operation.RECEIVE:
                    self.time[t] += self.on.receive_s[self.p.message_class[self.p.argument[r]]]
            self.time[t] += cost
        self.end[k] = self.time[t]
        self.paid[t] = False
        self.at[t] += 1
        if kind == Operation.SEND:
            waits = self.awaits_receive(self.p.message_class[m])
            if not waits:
                self.done[k] = self.end[k]
            if not waits or self.end[self.op_of[2, m]] == self.end[self.op_of[2, m]]:
                self.matched[m] = 0
        elif kind == Operation.RECEIVE:
            send = self.op_of[1, m]
            if self.awaits_receive(self.p.message_class[m]) and self.end[send] == self.end[send]:
                self.matched[m] = 0
        elif kind == Operation.ENTER:
            self.enter(m)
        return True

    def enter(self, collective):
        members = [
            k
            for k in self.rank_of
            if self.p.operation[k] == Operation.ENTER and self.p.argument[k] == collective
        ]
        root = self.p.root[collective]
        for k in members:
            for_whom = {
                Semantics.ALL_WAIT: members,
                Semantics.WAIT_FOR_ROOT: [j for j in members if self.rank_of[j] == root],
                Semantics.ROOT_WAITS: members if self.rank_of[k] == root else [k],
                Semantics.PREFIX: [j for j in members if self.rank_of[j] <= self.rank_of[k]],
            }[Semantics(self.p.semantics[collective])]
            times = [self.end[j] for j in {*for_whom, k}]
            if all(time == time for time in times):
                self.done[k] = max(times) + float(self.p.operation_s[k])

    def rates(self):
        """Bytes/s of each message under way."""
        rates, table = {}, self.on.bandwidth_bytes_per_s
        through: dict[Any, list[int]] = {}
        for m in self.left:
            src, dst = (self.rank_of[self.op_of[kind, m]] for kind in (1, 2))
            if self.on.is_between[self.p.message_class[m]]:
                through.setdefault(("out", self.on.node[src]), []).append(m)
                through.setdefault(("in", self.on.node[dst]), []).append(m)
            else:
                through.setdefault(("group", self.on.group[dst]), []).append(m)
        dst_of = {m: self.rank_of[self.op_of[2, m]] for m in self.left}
        src_of = {m: self.rank_of[self.op_of[1, m]] for m in self.left}

        def rate_of(n, m):
            return table[min(n, len(table)) - 1, self.p.message_class[m]]

        room, weight = {}, {}
        for end, messages in list(through.items()):
            n = len({(src_of if end[0] == "out" else dst_of)[m] for m in messages})
            if end[0] == "group":
                for m in messages:
                    own = sum(dst_of[j] == dst_of[m] for j in messages)
                    rates[m] = rate_of(n, m) / n / own
                del through[end]
                continue
            room[end] = sum(rate_of(n, m) for m in messages) / len(messages)
            if end[0] == "in":
                weight |= {m: rate_of(n, m) / room[end] for m in messages}
        while through:
            level, full = min(
                (
                    (room[end] - sum(rates.get(m, 0) for m in all_of))
                    / sum(weight[m] for m in all_of if m not in rates),
                    end,
                )
                for end, all_of in through.items()
            )
            for m in through[full]:
                rates.setdefault(m, level * weight[m])
            through = {end: all_of for end, all_of in through.items() if any(m not in rates for m in all_of)}
        return rates
