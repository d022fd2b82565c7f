"""The balance of work over the ranks of a recorded program, and what even work would save."""

from dataclasses import dataclass, field

from earlybird.data import labels
from earlybird.data.schema import OMIT_EMPTY, Extra, NotNegative, Rank, Record, Share
from earlybird.data.units import format_seconds

# Of the run: what even work must save to be worth a sentence.
_UNEVEN = 0.05


@dataclass(frozen=True)
class WorkBalance(Record):
    """The time outside MPI calls of the rank that has most of it, and its mean over ranks.

    `mean_s` / `most_s` is the load balance efficiency of the POP project, where no rank waited for a core.

    Attributes
    ----------
    core_wait_share : share of the run in which ranks waited for cores, if they did: a part of these times may
        then be waiting.
    least_saved_s, most_saved_s : bounds of the time that balanced work saves; None if unknown, and if no rank
        waited for a core: it is `most_s` - `mean_s` then.
    rank : the rank with most time outside MPI calls.
    most_s, mean_s : time of that rank, and mean of all ranks.
    """

    rank: Rank
    most_s: NotNegative
    mean_s: NotNegative
    core_wait_share: Share = field(default=0.0, metadata=OMIT_EMPTY)
    least_saved_s: NotNegative | None = None
    most_saved_s: NotNegative | None = None
    extra: Extra = field(default_factory=dict)

    def saved_s(self) -> tuple[float, float] | None:
        """Return by how much the run would be shorter if all ranks had the mean and waited for nothing else:
        the lower and the upper bound; None if unknown."""
        if not self.core_wait_share:
            return self.most_s - self.mean_s, self.most_s - self.mean_s
        if self.least_saved_s is None or self.most_saved_s is None:
            return None
        return self.least_saved_s, self.most_saved_s

    def is_uneven(self, run_s: float) -> bool:
        """Return whether the imbalance is large enough to be reported."""
        saved_s = self.saved_s()
        # Without a core nobody computes.
        worth_s = _UNEVEN * (run_s if saved_s else run_s * (1 - self.core_wait_share))
        return (saved_s[1] if saved_s else self.most_s - self.mean_s) > worth_s

    def sentence(self, run_s: float) -> str:
        """Return the time of the run that balanced work could save, as a clause; "" if it is small."""
        if not self.is_uneven(run_s):
            return ""
        most, mean = format_seconds(self.most_s), format_seconds(self.mean_s)
        saved_s = self.saved_s()
        if saved_s is None:
            return (
                f"rank {self.rank} is outside the MPI for {most} and ranks on average for {mean}; how much "
                "of that is computation, and what even work would save, is not known, since ranks waited for "
                f"a core in {labels.percent(self.core_wait_share)} of the run"
            )
        least_s, most_s = saved_s
        span = format_seconds(most_s)
        share = labels.percent(most_s / run_s)
        if format_seconds(least_s) != span:
            span = f"{format_seconds(least_s)} to {span}"
            share = f"{labels.percent(least_s / run_s)} to {share}"
        return (
            f"rank {self.rank} computes for {most} and ranks on average for {mean}: with even work the run "
            f"could be {span} shorter, {share} of it"
        )

    def action(self) -> str:
        """Return what to do about an imbalance: what is not known is not advised."""
        return "distribute the work evenly" if self.saved_s() else "give every rank a core and record again"

    def remedy(self, run_s: float) -> str:
        """Return the remedy for the imbalance, to go with `sentence`; "" if it is small."""
        sentence = self.sentence(run_s)
        return f"{self.action()}: {sentence}" if sentence else ""
