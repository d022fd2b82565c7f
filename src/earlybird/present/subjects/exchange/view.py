"""Exchanges: each pattern with its measured and predicted times per rank."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from earlybird.analysis import link_limits
from earlybird.analysis.disturbances import overload_of
from earlybird.compare.intervals import over_launches
from earlybird.data import labels
from earlybird.data.comparison import EmptyExchange
from earlybird.data.exchange_models import model_order
from earlybird.data.layout import Layout
from earlybird.data.pattern import Pattern
from earlybird.data.run import Sample
from earlybird.data.schema import Estimate
from earlybird.data.statistics import MEDIAN, Statistic
from earlybird.patterns.traffic import Traffic, traffic
from earlybird.present.material import MeasuredRun


class ModelError(NamedTuple):
    """The errors of a model and the time of its slowest rank; None for the measurement."""

    model: str
    relative: float | None
    of_slowest: float | None
    slowest_s: float


@dataclass(frozen=True)
class Exchange:
    """An exchange. All arrays have shape (P,), seconds per rank. `measured_s` is None without a measurement.

    `error` is equation (11) of Thune et al. 2023 and `slowest_error` the signed error of the slowest rank,
    both from the comparison and empty without one. `where` has the node and socket of each rank, None if
    unknown; `layout` is its text. `packing_s` is the part of predicted times that is packing, by how messages
    are packed. `name` distinguishes several exchanges, "" for one.
    """

    source: str  # the name of the file or run folder that it is from
    digest: str  # of the pattern
    num_ranks: int
    pattern: Pattern | None
    layout: str = ""
    measured_s: np.ndarray | None = None
    predicted_s: Mapping[str, np.ndarray] = field(default_factory=dict)
    error: Mapping[str, float] = field(default_factory=dict)
    slowest_error: Mapping[str, float] = field(default_factory=dict)
    oversubscribed: bool = False
    notes: tuple[str, ...] = ()
    run: MeasuredRun | None = None
    samples: Sequence[Sample] = ()
    name: str = ""
    profile_id: str = ""  # of the predictions
    where: Layout | None = None
    empty: EmptyExchange | None = None
    packing_s: Mapping[str, np.ndarray] = field(default_factory=dict)
    statistic: Statistic = MEDIAN  # of `measured_s`

    @property
    def is_placed(self) -> bool:
        """True if the pattern and the place of each rank are known."""
        return self.pattern is not None and self.where is not None

    @cached_property
    def traffic(self) -> Traffic:
        """The messages by level, rank and node, of an exchange that `is_placed`."""
        if self.pattern is None or self.where is None:
            raise ValueError("the pattern or the layout is unknown")
        return traffic(self.pattern, self.where)

    @property
    def parts(self) -> tuple[str, ...]:
        """Ranks, messages, layout, MPI, pattern and what packs the messages, "" where unknown."""
        return (
            labels.counted(self.num_ranks, "rank"),
            labels.counted(self.pattern.num_messages, "message") if self.pattern is not None else "",
            f"layout {self.layout}" if self.layout else "",
            labels.flavour(self.mpi) if self.mpi else "",
            f"pattern {self.digest[:8]}" if self.digest else "",
            self.packed,
        )

    @property
    def mpi(self) -> str:
        """The label of the MPI; "" if it was not measured."""
        return str(self.samples[0].config.get("mpi", "")) if self.samples else ""

    @property
    def packed(self) -> str:
        """`strided data packed by mpi`; "" if ranks sent contiguous buffers."""
        config = self.samples[0].config if self.samples else {}
        return f"{config['packing']} data packed by {config.get('packing_by')}" if "packing" in config else ""

    @property
    def map_by(self) -> str:
        """The numbering of the ranks by the layout; "" if unknown."""
        settings = self.run.header.get("settings") if self.run else None
        return str(settings.get("map_by") or "") if isinstance(settings, dict) else ""

    @property
    def title(self) -> str:
        return ", ".join(part for part in self.parts if part)

    @property
    def link(self) -> tuple[int, float] | None:
        """The node of the busiest virtual link, and the fraction of the measured time that it is busy."""
        if self.measured_s is None:
            return None
        launches = self.run.launches if self.run else ()
        placed = next((launch for launch in reversed(launches) if launch.get("placement")), None)
        return link_limits.exchange_share(self.pattern, placed, float(self.measured_s.max()))

    @property
    def link_limited(self) -> bool:
        """True if a virtual link was the bottleneck, even with several ranks per core."""
        return self.link is not None and self.link[1] >= link_limits.EXCHANGE_LIMIT_SHARE

    @property
    def load(self) -> float | None:
        """The load at the start of the run, if other work kept all cores busy."""
        return overload_of(self.run.machine) if self.run else None

    @property
    def slowest_s(self) -> Estimate | None:
        """The measured time of the slowest rank; without an interval if the samples do not have that time."""
        if self.measured_s is None:
            return None
        rank, exact = int(self.measured_s.argmax()), Estimate.exact(float(self.measured_s.max()))
        if not self.samples:
            return exact
        time_s, _ = over_launches(
            [np.asarray(sample.rank_times_s)[sample.warmup :, rank] for sample in self.samples],
            self.statistic,
        )
        return time_s if time_s.low <= exact.value <= time_s.high else exact

    @property
    def is_timed(self) -> bool:
        """True if a measured or predicted time exists."""
        return bool(self.series())

    def models(self) -> list[str]:
        """Return the models of the predictions, in their usual order."""
        return sorted(self.predicted_s, key=lambda name: (model_order(name), name))

    def series(self, *, with_empty: bool = False) -> dict[str, np.ndarray]:
        """Return the times by `measured` and by model; `with_empty` also those of empty messages, if these
        were measured."""
        empty_s = self.empty.measured_s if with_empty and self.empty else None
        measured = {"measured": self.measured_s, "empty": empty_s}
        known = {name: times_s for name, times_s in measured.items() if times_s is not None}
        return known | {model: self.predicted_s[model] for model in self.models()}

    def reference(self) -> tuple[str, np.ndarray]:
        """Return the times that the sentence describes: measured, or those of the first model."""
        return next(iter(self.series().items()))

    def best_first(self) -> list[str]:
        """Return the models that are compared with a measurement, the most accurate first."""
        return sorted(self.error, key=lambda name: self.error[name])

    def errors(self) -> list[ModelError]:
        """Return the errors of every model, best first, also over the exchange of empty messages if that was
        measured; last the measurement."""
        errors = [
            ModelError(
                model + suffix, error, source.slowest_error[model], float(source.predicted_s[model].max())
            )
            for source, suffix in ((self, ""), (self.empty, " over empty"))
            if source is not None
            for model, error in source.error.items()
        ]
        measured = [] if self.measured_s is None else [self.measured_s.max()]
        return [
            *sorted(errors, key=lambda error: (error.relative, error.of_slowest)),
            *(ModelError("measured", None, None, float(time_s)) for time_s in measured),
        ]
