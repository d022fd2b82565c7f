"""Read samples of collectives into a table: completion, mean over ranks and root's time, with placements."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas

from earlybird.data.collective_algorithms import OPERATIONS, REDUCE_LOCAL, UNMODELLED, family_of, parse_method
from earlybird.data.errors import InputError
from earlybird.data.kernels import COLLECTIVE
from earlybird.data.layout import parse_layout
from earlybird.data.levels import MAPPINGS
from earlybird.data.run import Run, Sample
from earlybird.data.units import MIN_S
from earlybird.fit.config_values import config_value

# One row per point, method and launch. `placement` indexes `Collectives.placements`; `mean_s` is the mean
# over ranks, as OSU's benchmarks print, `root_s` the completion of the root; both NaN if the times of ranks
# were not kept. `family` is the MPI that the algorithms belong to, whatever the label `mpi` is.
COLUMNS = ("operation", "method", "algorithm", "segment_bytes", "mpi", "family", "map_by", "placement",
"ranks",
           "size_bytes", "root", "launch", "time_s", "mean_s", "root_s", "oversubscribed",
           "converged")  # fmt: skip
REDUCTION_COLUMNS = ("size_bytes", "launch", "time_s")

_SHAPE = re.compile(r"([0-9]+)x([0-9]+)x([0-9]+)")


@dataclass(frozen=True)
class Collectives:
    """The times of collectives of one context.

    Attributes
    ----------
    table : see COLUMNS; `time_s` is the median completion, the last rank's time, of the steady iterations.
    reductions : MPI_Reduce_local by size and launch, see REDUCTION_COLUMNS.
    placements : node and socket of every rank, (P,) each.
    machine : "nodes", "sockets" of a node and "cores" of a socket of the layouts measured.
    left_out : operations that were measured and that no model describes.
    """

    table: pandas.DataFrame = field(default_factory=lambda: pandas.DataFrame(columns=list(COLUMNS)))
    reductions: pandas.DataFrame = field(
        default_factory=lambda: pandas.DataFrame(columns=list(REDUCTION_COLUMNS))
    )
    placements: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    machine: Mapping[str, int] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.table)


def is_collective(sample: Sample) -> bool:
    """Return whether `sample` has times of an operation or of a local reduction; samples with delays do
    not.
    """
    return sample.kernel == COLLECTIVE.name and sample.quantity in (COLLECTIVE.quantity, REDUCE_LOCAL)


def without_iterations(sample: Sample) -> Sample:
    """Return the sample with its median only: all iterations of hundreds of ranks would fill the memory."""
    return replace(sample, times_s=np.array([sample.median_s()]), warmup=0, rounds=None, rank_times_s=None)


class CollectiveReader:
    """A reader of samples, one by one, that keeps the values that a fit needs."""

    def __init__(self, runs: Iterable[Run]):
        self._launches = {
            (run.id, str(launch.get("id"))): launch for run in runs for launch in run.launches()
        }
        self._rows: list[tuple] = []
        self._reductions: list[tuple] = []
        self._placements: dict[tuple[bytes, bytes], tuple[int, np.ndarray, np.ndarray]] = {}
        self._machine: dict[str, int] = {}
        self._left_out: dict[str, None] = {}

    def add(self, run: Run, sample: Sample) -> None:
        """Add a sample; raise InputError if it does not describe its measurement."""
        if sample.config.get("operation") in UNMODELLED:
            self._left_out[sample.config["operation"]] = None
            return
        median_s = sample.median_s()
        launch = f"{run.id}/{sample.launch}"
        value_of = partial(config_value, run, sample)
        size_bytes = value_of("size_bytes", int)
        if sample.quantity == "reduce_local":
            self._reductions.append((size_bytes, launch, median_s))
            return
        operation, map_by, layout = (value_of(key, str) for key in ("operation", "map_by", "layout"))
        ranks, root = value_of("ranks", int), value_of("root", int, 0)
        usable = (
            operation in OPERATIONS and map_by in MAPPINGS and ranks >= 2 and 0 <= root < ranks
            and size_bytes >= 0 and median_s >= MIN_S and sample.method is not None
        )  # fmt: skip
        if not usable:
            raise InputError(
                f"{run.path}: a collective sample says operation={operation} method={sample.method} "
                f"ranks={ranks} "
                f"root={root} map_by={map_by} size_bytes={size_bytes} and a median of {median_s:g} s; times "
                "must be above 0, ranks 2 or more, and the root one of them: measure again"
            )
        method = parse_method(sample.method)
        placement = self._place(run, sample, layout, map_by, ranks)
        mean_s, root_s = _over_ranks(sample, ranks, root)
        mpi = str(sample.config.get("mpi", ""))
        family = family_of(self._launches.get((run.id, sample.launch), {})) or mpi
        self._rows.append(
            (operation, method.text, method.name, method.segment_bytes, mpi, family, map_by, placement,
             ranks, size_bytes, root, launch, median_s, mean_s, root_s, sample.oversubscribed,
             sample.converged)
        )  # fmt: skip

    def collectives(self) -> Collectives:
        return Collectives(
            pandas.DataFrame(self._rows, columns=list(COLUMNS)),
            pandas.DataFrame(self._reductions, columns=list(REDUCTION_COLUMNS)),
            tuple((node, socket) for _, node, socket in self._placements.values()),
            self._machine,
            tuple(self._left_out),
        )

    def _place(self, run: Run, sample: Sample, layout: str, map_by: str, ranks: int) -> int:
        """Return the number of the observed placement, or of the requested one if the launch did not record
        it.
        """
        if shape := _SHAPE.search(layout):
            for name, count in zip(("nodes", "sockets", "cores"), shape.groups(), strict=True):
                self._machine[name] = max(self._machine.get(name, 1), int(count))
        launch = self._launches.get((run.id, sample.launch), {})
        placed = placed_ranks(launch.get("placement") or (), layout, map_by, ranks)
        if placed is None:
            raise InputError(
                f"{run.path}: neither launch {sample.launch} nor the layout {layout!r} gives the placement "
                "of "
                "the ranks; measure again"
            )
        node, socket = placed
        if len(node) < ranks:
            raise InputError(f"{run.path}: a sample of {ranks} ranks has the layout {layout}; measure again")
        key = node.astype(np.int64).tobytes(), socket.astype(np.int64).tobytes()
        return self._placements.setdefault(key, (len(self._placements), node, socket))[0]


def placed_ranks(
    observed: Iterable[Mapping[str, Any]], layout: str, map_by: str, ranks: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the node and socket of every rank as the launch observed them, or else as its layout requested;
    None if neither gives them.
    """
    entries = list(observed)
    is_known = all(entry.get(key) is not None for entry in entries for key in ("rank", "node", "socket"))
    if len(entries) == ranks and is_known:
        entries.sort(key=lambda entry: entry["rank"])
        node, socket = (np.array([entry[key] for entry in entries]) for key in ("node", "socket"))
        return node, socket
    if shape := _SHAPE.search(layout):
        asked = parse_layout(shape.group(), map_by)
        return asked.node[:ranks], asked.socket[:ranks]
    return None


def _over_ranks(sample: Sample, ranks: int, root: int) -> tuple[float, float]:
    times_s = sample.rank_times_s
    if times_s is None or times_s.shape[1] != ranks:
        return np.nan, np.nan
    steady_s = times_s[sample.warmup :]
    return float(np.median(steady_s.mean(axis=1))), float(np.median(steady_s[:, root]))
