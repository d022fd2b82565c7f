"""Fit alpha-beta-gamma forms of collectives: one for each operation and algorithm, for all mappings."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas

from earlybird.data.collective_algorithms import tree_of, unmodelled_hint
from earlybird.data.collective_form import Collective, CollectiveForm, CollectiveParameters
from earlybird.data.layout import Layout, parse_layout
from earlybird.data.levels import LEVELS
from earlybird.fit import resampling
from earlybird.fit.collective_judgement import Judgement, judge
from earlybird.fit.collective_samples import Collectives
from earlybird.fit.collective_search import Points, fit
from earlybird.models.collective import (
    EMPIRICAL,
    count_hops,
    make_calls,
    term_names,
)
from earlybird.models.regression import fit_line

GROUP = ["operation", "algorithm", "mpi"]
POINT = ["method", "segment_bytes", "map_by", "placement", "ranks", "size_bytes", "root"]

# In trees of gather and scatter, messages carry data of several ranks: only linear has equal messages.
_WHOLE_BUFFER = ("bcast", "reduce")

# Keys of a machine, in the order of a layout.
_SHAPE = ("nodes", "sockets", "cores")

# Launches that measured the same of these replace each other in a draw.
_DRAWN = ["operation", "method", "map_by", "ranks"]

MIN_POINTS = 4
SEED = 20240612


def structure_of(family: str, operation: str, algorithm: str) -> str:
    """Return the structure of the form of an algorithm: a tree (see `models.trees`), or `empirical` if no
    tree is known or the messages along it differ.
    """
    tree = tree_of(family, operation, algorithm)
    return tree if tree and (operation in _WHOLE_BUFFER or tree == "linear") else EMPIRICAL


def collective_forms(collectives: Collectives) -> list[tuple[CollectiveForm, Judgement]]:
    """Fit a form for every operation and algorithm with MIN_POINTS points or more, and return each with its
    errors.

    Coefficients are not negative and maximise the likelihood of the medians over launches, with normal or
    Laplace residuals of their logarithms. The search starts with one protocol. It adds elements one at a
    time while AICc falls: further protocols by the size of a message (a segment), a constant, resources that
    messages share (links of nodes, or the outgoing path of a rank), the burst of idle links, the busiest link
    as a bound, and the work of all ranks as a bound if they share cores.
    """
    gamma = gamma_r_s_per_byte(collectives.reductions)
    draws, alone = resampling.draws(collectives.table, _DRAWN, SEED)
    forms = []
    for key, rows in collectives.table.groupby(GROUP, sort=False):
        what, rows = dict(zip(GROUP, key, strict=True)), proper_rows(collectives, rows)
        structure = structure_of(rows.family.iloc[0], what["operation"], what["algorithm"])
        reader = PointReader(collectives, structure)
        points = reader.points(rows)
        if len(points.time_s) < MIN_POINTS:
            continue
        resampled = [] if _has_fixed(rows, alone) else [reader.points(_drawn(rows, one)) for one in draws]
        judged = judge(points, structure, gamma)
        forms.append((_form(what, structure, rows, judged, resampled, collectives), judged))
    return forms


def proper_rows(collectives: Collectives, rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return the rows of one algorithm to fit. Inside a node, times of ranks that share cores measure the
    scheduler: such rows are left out if the other rows have two process counts. Between nodes they count:
    even if all nodes are on one machine, the links may be the limit.
    """
    inside = np.array([len(np.unique(node)) == 1 for node, _ in collectives.placements], dtype=bool)
    proper = rows[~(rows.oversubscribed.astype(bool) & inside[rows.placement.to_numpy(dtype=int)])]
    return proper if proper.ranks.nunique() > 1 else rows


def warnings(collectives: Collectives) -> list[str]:
    """Return the caveats of the forms of collectives, and the reasons why an algorithm has none."""
    table = collectives.table
    texts = [unmodelled_hint(collectives.left_out)] if collectives.left_out else []
    few: dict[str, list[str]] = {}
    single: dict[str, list[str]] = {}
    for (operation, algorithm, _), rows in table.groupby(GROUP, sort=False):
        if len(rows[POINT].drop_duplicates()) < MIN_POINTS:
            few.setdefault(operation, []).append(algorithm)
        elif rows.ranks.nunique() == 1:
            single.setdefault(operation, []).append(algorithm)
    for operation, names in few.items():
        texts.append(
            f"{operation}: {', '.join(names)} {_have(names)} fewer than {MIN_POINTS} points, too few for a "
            "model; measure more --sizes or --ranks"
        )
    for operation, names in single.items():
        texts.append(
            f"{operation}: {', '.join(names)} {_have(names)} one process count, so all others are "
            "extrapolated; measure several, --ranks 2..8"
        )
    for operation, rows in table.groupby("operation", sort=False):
        proper = pandas.concat([proper_rows(collectives, of_one) for _, of_one in rows.groupby(GROUP)])
        for shared, consequence in (
            (rows.drop(proper.index), "; these points are left out"),
            (proper[proper.oversubscribed.astype(bool)], ", so these times include the scheduler"),
        ):
            if len(shared):
                counts = ", ".join(map(str, sorted(shared.ranks.unique())))
                texts.append(f"{operation}: at {counts} ranks there were more ranks than cores{consequence}")
        if unsteady := int((~rows.converged.astype(bool)).sum()):
            texts.append(f"{operation}: the fit uses {len(rows)} samples, {unsteady} of them not converged")
    if len(table) and table.groupby([*GROUP, *POINT]).launch.nunique().max() < 2:
        texts.append("collectives: one launch of every point, so no intervals; measure 5 launches or more")
        return texts
    _, alone = resampling.draws(table, _DRAWN, SEED)
    fixed: dict[str, list[str]] = {}
    for (operation, algorithm, _), rows in table.groupby(GROUP, sort=False):
        if _has_fixed(proper_rows(collectives, rows), alone):
            fixed.setdefault(operation, []).append(algorithm)
    for operation, names in fixed.items():
        texts.append(
            f"{operation}: {', '.join(names)} {_have(names)} points of a single launch, so no intervals; "
            "measure 5 launches or more of all points"
        )
    return texts


def _have(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def gamma_r_s_per_byte(reductions: pandas.DataFrame) -> float:
    """Return the seconds per byte of a local reduction, the slope over sizes; 0 where it was not measured."""
    if reductions.empty:
        return 0.0
    medians = reductions.groupby(["size_bytes", "launch"]).time_s.median().groupby("size_bytes").median()
    medians = medians[(medians.index > 0) & (medians > 0)]
    if len(medians) < 2:
        return float((medians / medians.index).iloc[0]) if len(medians) else 0.0
    return float(fit_line(medians.index.to_numpy(dtype=float), medians.to_numpy())[1])


class PointReader:
    """A reader of points from rows of the table, which counts the hops of every placement once."""

    def __init__(self, collectives: Collectives, structure: str):
        self._placements, self._structure = collectives.placements, structure
        self._hops: dict[tuple[int, int], Any] = {}

    def points(self, rows: pandas.DataFrame, column: str = "time_s") -> Points:
        """Return the medians over launches of `column` (`time_s` or `mean_s`), without points that have no
        value in it.
        """
        medians = rows.groupby(POINT)[column].median().dropna().reset_index()
        hops = [self._count(*key) for key in zip(medians.placement, medians.root, strict=True)]
        return Points(
            make_calls(hops, medians.size_bytes.to_numpy(), medians.segment_bytes.to_numpy()),
            medians[column].to_numpy(dtype=float),
            medians.ranks.to_numpy(),
            medians.size_bytes.to_numpy(),
            medians.map_by.to_numpy(),
            medians.method.to_numpy(),
            int(rows.ranks[rows.oversubscribed.astype(bool)].min()) if rows.oversubscribed.any() else 0,
        )

    def _count(self, placement: int, root: int):
        key = placement, root
        if key not in self._hops:
            self._hops[key] = count_hops(self._structure, *self._placements[placement], root)
        return self._hops[key]


def _has_fixed(rows: pandas.DataFrame, alone: set[str]) -> bool:
    """Return whether some point has fewer than two launches that are not `alone`: no draw would vary it, and
    the interval would not include its variation.
    """
    point = [name for name in POINT if name != "placement"]  # its node numbers may differ between launches
    launches = rows[~rows.launch.isin(alone)].groupby(point).launch.nunique()
    return len(launches) < len(rows[point].drop_duplicates()) or launches.min() < 2


def _drawn(rows: pandas.DataFrame, draw: Sequence[str]) -> pandas.DataFrame:
    times = pandas.Series(draw).value_counts()
    count = rows.launch.map(times).fillna(0).astype(int)
    return rows.loc[rows.index.repeat(count)]


def _form(
    what: Mapping[str, str],
    structure: str,
    rows: pandas.DataFrame,
    judged: Judgement,
    resampled: Sequence[Points],
    collectives: Collectives,
) -> CollectiveForm:
    points, found = judged.points, judged.found
    terms = len(term_names(structure))
    extra: dict[str, Any] = {"points": len(points.time_s)} | judged.medians()
    if np.isfinite(found.criterion):  # undefined with hardly more points than parameters
        extra["aicc"] = found.criterion
    if rows.oversubscribed.any():
        extra["oversubscribed"] = True
    if (family := rows.family.iloc[0]) != what["mpi"]:
        extra["family"] = family
    ranges = {name: (int(rows[name].min()), int(rows[name].max())) for name in ("ranks", "size_bytes")}
    return CollectiveForm(
        what=Collective(**what),
        form="empirical" if structure == EMPIRICAL else "alpha-beta",
        tree=None if structure == EMPIRICAL else structure,
        parameters=CollectiveParameters.of_columns(structure, vars(found.costs)),
        range=ranges | {"segments_bytes": tuple(np.unique(rows.segment_bytes).astype(int).tolist())},
        map_by=tuple(rows.map_by.unique()),
        levels=tuple(np.array(LEVELS)[(points.calls.alpha > 0).any(axis=(0, 1))].tolist()),
        machine=collectives.machine,
        measured=_measured(rows, collectives),
        replicates=tuple(
            CollectiveParameters.of_columns(structure, vars(fit(drawn, found.structure, terms).costs))
            for drawn in resampled
        ),
        extra=extra,
    )


def _measured(
    rows: pandas.DataFrame, collectives: Collectives
) -> tuple[tuple[int, int, int, str, float], ...]:
    """Return the times of ranks placed in the order in which the machine is filled: with fewer nodes, or
    shared cores, ranks may have been placed differently.
    """
    if not collectives.machine:
        return ()
    shape = "x".join(str(collectives.machine[name]) for name in _SHAPE)
    placed = list(zip(rows.placement, rows.map_by, strict=True))
    filled = {
        (placement, map_by): _same_placement(collectives.placements[placement], parse_layout(shape, map_by))
        for placement, map_by in set(placed)
    }
    keys = ["ranks", "size_bytes", "segment_bytes", "map_by"]
    usual = (rows.root == 0) & np.array([filled[one] for one in placed], dtype=bool)
    medians = rows[usual].groupby(keys).time_s.median()
    return tuple((*map(int, counts), map_by, float(time_s)) for (*counts, map_by), time_s in medians.items())


def _same_placement(placement: tuple[np.ndarray, np.ndarray], whole: Layout) -> bool:
    """Return whether ranks share nodes and sockets like the first ranks of `whole`, in any numbering."""
    node, socket = placement
    if len(node) > whole.num_ranks:
        return False
    ranks = np.arange(len(node))
    observed, asked = Layout(node, socket, ""), Layout(whole.node[ranks], whole.socket[ranks], "")
    pairs = ranks[:, None], ranks
    return np.array_equal(observed.level(*pairs), asked.level(*pairs))
