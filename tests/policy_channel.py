"""Channels whose starts take given times, and whose policy decides on their segments as in adaptation.c."""

from collections.abc import Callable
from ctypes import CDLL, byref, c_void_p
from dataclasses import dataclass, field

from tests.core_library import PLAN_MAX_CUTS, Observation, Plan, Policy, PolicyTerms, Proposal

LATER = 2  # starts until the feedback on one is there


@dataclass
class Taken:
    """What a start takes after its last partition is ready, and the sends before that hold the program up."""

    after_s: float
    held_up_s: float = 0.0
    ready_s: float = 1e-3  # from the start to the last partition's readiness, without these sends
    is_seen: bool = True  # its feedback arrives in time

    @property
    def total_s(self) -> float:
        return self.after_s + self.held_up_s


def proposal(num: int, predicted_s: float, path: int = 0) -> Proposal:
    made = Proposal(predicted_s=predicted_s)
    made.cut.num, made.cut.path = num, path
    for place in range(num):
        made.cut.end_byte[place] = 64 * (place + 1)
    return made


def policy_of(
    core: CDLL,
    cuts: list[tuple[int, float] | tuple[int, float, int]],
    in_use: tuple[int, float],
    num_starts: int = 1,
    **terms: object,
) -> Policy:
    """The policy of a kind whose proposals have these (number of segments, predicted time, path: 0 if none is
    given)."""
    proposals = (Proposal * PLAN_MAX_CUTS)(*(proposal(*cut) for cut in cuts))
    policy = Policy()
    used = byref(proposal(*in_use))
    core.eb_policy_begin(byref(policy), byref(PolicyTerms(**terms)), len(cuts), proposals, used, num_starts)
    return policy


@dataclass
class Channel:
    """The sender's side of a channel from its first start on, and what its messages say."""

    core: CDLL
    policy: Policy
    take: Callable[[int, int], Taken]  # of a number of segments in a start
    num_segments: int
    name: int = 1
    is_small: bool = False
    start: int = 0
    next_due: int = 0
    reported: int = 1
    used: list[int] = field(default_factory=list)  # the segments of each start
    taken_s: list[float] = field(default_factory=list)
    messages: list[int] = field(default_factory=list)  # the starts with one
    num_feedback: int = 0
    changes: dict[int, int] = field(default_factory=dict)  # by start, the segments from then on
    feedback: range = range(0)
    unread: dict[int, Taken] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.next_due = self.core.eb_policy_first_message(self.is_small)
        self.policy.num_channels += 1

    def run(self, num: int) -> "Channel":
        for _ in range(num):
            self.step()
        return self

    def step(self) -> None:
        self.start += 1
        self.num_segments = self.changes.pop(self.start, self.num_segments)
        if self.start == self.next_due:
            self.exchange_message()
        taken = self.take(self.num_segments, self.start)
        if self.start in self.feedback:
            self.unread[self.start] = taken
            self.num_feedback += 1
        self.used.append(self.num_segments)
        self.taken_s.append(taken.total_s)

    def exchange_message(self) -> None:
        for start in [start for start in self.unread if start + LATER <= self.start]:
            taken = self.unread.pop(start)
            observed = Observation(taken.after_s, taken.ready_s + taken.held_up_s, taken.held_up_s)
            if taken.is_seen:
                self.core.eb_policy_observe(byref(self.policy), c_void_p(self.name), start, byref(observed))
        in_use = self.policy.options[self.policy.in_use].proposal.cut.num
        plan = Plan()
        self.core.eb_policy_decide(
            byref(self.policy), c_void_p(self.name), self.start, self.start - self.reported,
            self.num_segments == in_use, 0.0, byref(plan),
        )  # fmt: skip
        self.reported = self.start
        self.messages.append(self.start)
        self.changes = {self.start + 1: plan.cut.contents.num}
        if plan.trial:
            assert self.start < plan.trial_from < plan.trial_end < plan.next_due
            self.changes[plan.trial_end] = self.changes[self.start + 1]
            self.changes[plan.trial_from] = plan.trial.contents.num
        assert plan.next_due > self.start
        assert plan.feedback_end - plan.feedback_from <= len(self.policy.observed)
        self.feedback = range(plan.feedback_from, plan.feedback_end)
        self.next_due = plan.next_due
