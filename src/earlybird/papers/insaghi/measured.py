"""The latencies of runs that reproduce Insaghi's paper, and its regressions through them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas

from earlybird.data import labels
from earlybird.data.collective_algorithms import parse_method
from earlybird.data.methods import OWN
from earlybird.data.run import Sample
from earlybird.fit.insaghi_forms import Regression, regressions
from earlybird.papers.page import crowded_text, runs_of
from earlybird.predict.published_collectives import published_mapping
from earlybird.present.core.parts import grouped
from earlybird.present.material import Material, MeasuredRun
from earlybird.present.subjects.collectives.view import is_timed

NAME = "insaghi"
OPERATIONS, ALGORITHMS = ("bcast", "reduce"), ("linear", "pipeline", "binomial")
OPENMPI = "openmpi"
COMPLETION, MEAN = "time_s", "mean_s"
STATISTICS = {MEAN: "mean over ranks", COMPLETION: "completion of the last rank"}


@dataclass(frozen=True, eq=False)
class Latencies:
    """The latencies that were measured of one MPI, with the names of the paper.

    Attributes
    ----------
    table : a row for each sample: the columns of `fit.collective.POINT`, "operation", and the times of
        COMPLETION and, NaN where the times of ranks were not kept, MEAN.
    statistic : the column that is compared: the paper's mean over ranks, where it is known.
    break_ranks : the ranks that fill the first node, at which form 1 has its break.
    own : whether Earlybird's algorithms were measured, because the MPI's cannot be forced.
    crowded : that some latencies had more ranks than cores, as text; "" if none had.
    """

    label: str
    table: pandas.DataFrame
    statistic: str
    break_ranks: int
    own: bool
    crowded: str

    def regressions(self) -> list[Regression]:
        """Return the fits of the paper that these latencies allow."""
        rows = self.table.dropna(subset=[self.statistic])
        return regressions(rows, self.break_ranks, self.statistic) if len(rows) else []

    def curve(self, operation: str, algorithm: str, map_by: str) -> list[tuple[int, float]]:
        """Return ranks and microseconds of the smallest size, medians over launches."""
        table = self.table.dropna(subset=[self.statistic])
        rows = table[(table.operation == operation) & (table.method == algorithm) & (table.map_by == map_by)]
        if rows.empty:
            return []
        small = rows[rows.size_bytes == rows.size_bytes.min()]
        medians = small.groupby("ranks")[self.statistic].median()
        return [(int(ranks), float(time_s) * 1e6) for ranks, time_s in medians.items()]

    def surface(self, operation: str, algorithm: str, map_by: str) -> list[tuple[int, int, float]]:
        """Return ranks, bytes and microseconds, medians over launches."""
        table = self.table.dropna(subset=[self.statistic])
        rows = table[(table.operation == operation) & (table.method == algorithm) & (table.map_by == map_by)]
        medians = rows.groupby(["ranks", "size_bytes"])[self.statistic].median()
        return [(int(p), int(m), float(time_s) * 1e6) for (p, m), time_s in medians.items()]


def latencies(material: Material) -> list[Latencies]:
    """Return the latencies of every MPI, of the runs that reproduce the paper."""
    runs = runs_of(material, NAME)
    by_mpi = grouped(
        ((run, sample) for run in runs for sample in run.samples if is_timed(sample)),
        lambda pair: str(pair[1].config.get("mpi", "")),
    )
    return [found for mpi, pairs in by_mpi.items() if (found := _of_mpi(mpi, pairs))]


def _of_mpi(mpi: str, pairs: Sequence[tuple[MeasuredRun, Sample]]) -> Latencies | None:
    own = (pairs[0][0].family(mpi) or mpi) != OPENMPI
    rows, crowded = [], ""
    for run, sample in pairs:
        algorithm = parse_method(sample.method or "").name
        if algorithm.startswith(OWN) is not own or algorithm.removeprefix(OWN) not in ALGORITHMS:
            continue
        config = sample.config
        crowded = crowded or (crowded_text("ranks", run) if sample.oversubscribed else "")
        rows.append(
            {
                "operation": str(config["operation"]),
                "method": algorithm.removeprefix(OWN),
                "segment_bytes": 0,
                "map_by": published_mapping(str(config.get("map_by", ""))),
                "placement": 0,
                "ranks": int(config["ranks"]),
                "size_bytes": int(config["size_bytes"]),
                "root": 0,
                "launch": f"{run.header.get('id')}/{sample.launch}",
                COMPLETION: sample.median_s(),
                MEAN: _mean_s(sample),
            }
        )
    if not rows:
        return None
    table = pandas.DataFrame(rows)
    statistic = MEAN if table[MEAN].notna().all() else COMPLETION
    return Latencies(labels.flavour(mpi), table, statistic, _ranks_of_first_node(table, pairs), own, crowded)


def _mean_s(sample: Sample) -> float:
    """Return the mean over ranks, as OSU's benchmarks print it: the median over iterations."""
    times_s = sample.rank_times_s
    if times_s is None or times_s.shape[1] != int(sample.config["ranks"]):
        return float("nan")
    return float(np.median(times_s[sample.warmup :].mean(axis=1)))


def _ranks_of_first_node(table: pandas.DataFrame, pairs: Sequence[tuple[MeasuredRun, Sample]]) -> int:
    """Return the most ranks that were on one node; all, if there was no other node."""
    nodes_of = [
        (len(places), len({(place.get("host"), place.get("node")) for place in places}))
        for run in {id(run): run for run, _ in pairs}.values()
        for launch in run.launches
        if (places := [one for one in launch.get("placement") or () if isinstance(one, dict)])
    ]
    alone = [ranks for ranks, nodes in nodes_of if nodes == 1]
    several = any(nodes > 1 for _, nodes in nodes_of)
    return max(alone) if several and alone else int(table.ranks.max())
