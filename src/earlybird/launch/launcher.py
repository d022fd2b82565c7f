"""The interface of every launcher: a request for one launch of a kernel, and the samples that it writes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from earlybird.data.collective_algorithms import Forcing
from earlybird.data.layout import Layout
from earlybird.data.pattern import Pattern
from earlybird.data.run import Sample


@dataclass(frozen=True)
class Rules:
    """The stop rule of a launch; the kernels' defaults are in native/harness/request/request.hpp.

    `mode` is `median` (interval of the median within `target`, or `budget_s` spent) or `paper` (Gillis et al.
    2023: 150 iterations, Student-t 90 %, 5 %, 50 retries). Every point has `min_iterations` even beyond the
    budget, `min_cold_iterations` if the caches are emptied before each; fewer where these take longer than
    `most_s`.
    """

    mode: str = "median"
    target: float = 0.02
    budget_s: float = 0.2
    most_s: float = 3600.0
    min_iterations: int = 30
    min_cold_iterations: int = 8
    paper_iterations: int = 150
    paper_retries: int = 50
    t_quantile: float = 1.655144534


@dataclass(frozen=True)
class Request:
    """A request for one launch: `kernel` at each of `points`, with ranks placed as in `layout`.

    A kernel that knows several methods measures all of `methods` at every point and writes a sample for each.
    `preload`: only the ranks get libearlybird. `threads`: number per rank, None: the launcher's number;
    `vcis`: communication contexts requested from each rank's MPI, None: its default; `streams`: number of
    MPIX_Stream for which further contexts are reserved. `environment` are variables of this launch,
    `settings` the control variables by which methods differ. `verifying`: before its own samples, the first
    point also writes one sample per method that shows the method's tree. `seed`: seed of the random
    computation times of kernels that have them. `mean_over_ranks`: the time of a collective is the mean of
    the ranks' times, not that of the last rank. `stop`: once it is set, the launch ends.
    """

    id: str
    kernel: str
    points: Sequence[Mapping[str, Any]]
    layout: Layout
    rules: Rules = field(default_factory=Rules)
    pattern: Pattern | None = None
    time_limit_s: float = 3600.0
    stall_limit_s: float = 60.0
    methods: tuple[str, ...] = ()
    preload: bool = False
    threads: int | None = None
    vcis: int | None = None
    streams: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Forcing] = field(default_factory=dict)
    verifying: bool = False
    seed: int = 1
    mean_over_ranks: bool = False
    stop: Event | None = None

    def points_in(self, num_samples: int) -> int:
        """Return how many points are complete once `num_samples` have been written."""
        methods = max(len(self.methods), 1)
        return max(num_samples - (methods if self.verifying else 0), 0) // methods


# Hears how many points of a launch are done, and the sample of the last one where it is known by then.
Heard = Callable[[int, Sample | None], None]


@dataclass(frozen=True)
class Launched:
    """The output of one launch: its line for launches.ndjson and every complete sample, also if it died
    (`cause`).

    `interrupted` is a Ctrl-C: complete samples are here, and the caller ends after storing them.
    """

    record: dict[str, Any]
    samples: list[Sample]
    cause: str | None = None
    interrupted: bool = False


class Launcher(Protocol):
    """A launcher of kernels. `name` and `flavour` are stored in provenance."""

    name: str
    flavour: str

    def check(self, layout: Layout) -> None:
        """Raise InputError if ranks cannot be placed as `layout` requires."""

    def shares_cores(self, layout: Layout) -> bool:
        """Return whether ranks of `layout` wait for a core that other ranks use."""

    def launch(self, request: Request, scratch: Path, progress: Heard) -> Launched:
        """Run one launch to its end, with files in the folder `scratch`; `progress` is called with the number
        of completed points."""
