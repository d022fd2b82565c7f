"""Collectives to alpha-beta-gamma forms: one for each operation and algorithm, all its mappings together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas
from scipy.optimize import nnls

from earlybird.data.collective_algorithms import tree_of
from earlybird.data.collective_form import CollectiveForm, CollectiveParameters
from earlybird.data.layout import LEVELS
from earlybird.fit.collective_samples import Collectives
from earlybird.models.collective import (
    EMPIRICAL,
    Calls,
    CollectiveCosts,
    collective_time_s,
    count_hops,
    make_calls,
    term_names,
)
from earlybird.models.regression import fit_line

GROUP = ["operation", "algorithm", "mpi"]
POINT = ["way", "segment_bytes", "map_by", "placement", "ranks", "size_bytes", "root"]

# Of gather and scatter, messages inside a tree are of the data of several ranks: linear alone has them alike.
_WHOLE_BUFFER = ("bcast", "reduce")

MIN_POINTS = 4
MAX_PROTOCOLS = 3
POINTS_PER_PARAMETER = 3
NUM_REPLICATES = 20
SEED = 20240612
MAX_TURNS, MAX_TURNS_OF_PARTS = 8, 20
# What a point waits for.
_WAY, _LINK, _WORK = range(3)
# To begin with a link, or work, takes what this share of the points allows it; points of which that is less
# than a share of the time wait for the way.
QUICKEST_PERCENT, FREE_SHARE = 5, 0.7
# Where absolute values count, a logarithm below this pulls no harder.
NEAR = 0.01
# A time that a form puts at less than this share of what it is, or below, is taken for this share.
LEAST_SHARE = 1e-3


@dataclass(frozen=True, eq=False)
class Points:
    """Measured points of one algorithm, (n,) each; times are medians over launches."""

    calls: Calls
    time_s: np.ndarray
    ranks: np.ndarray
    size_bytes: np.ndarray
    map_by: np.ndarray
    way: np.ndarray
    crowded_from_ranks: int = 0  # the fewest ranks that shared cores; 0 where none did

    def only(self, chosen: np.ndarray) -> "Points":
        arrays = {name: item[chosen] for name, item in vars(self).items() if isinstance(item, np.ndarray)}
        return replace(self, calls=self.calls.only(chosen), **arrays)


@dataclass(frozen=True)
class Structure:
    """Which coefficients there are: protocols of the message by size, and what is there besides the hops.

    `gamma_r_s_per_byte` is given, by local reductions, not sought.
    """

    min_bytes: tuple[int, ...] = (0,)
    constant: bool = False
    link: bool = False
    work_from_ranks: int = 0
    shared: str | None = None
    gamma_r_s_per_byte: float = 0.0


@dataclass(frozen=True, eq=False)
class Fit:
    """A structure with its coefficients; `num_parameters` counts those above 0, switches and the spread."""

    structure: Structure
    costs: CollectiveCosts
    num_parameters: int
    aicc: float

    def predict_s(self, points: Points) -> np.ndarray:
        return collective_time_s(points.calls, self.costs)


def structure_of(family: str, operation: str, algorithm: str) -> str:
    """What its form is: a tree (see `models.trees`), or `empirical` where no such tree is known or messages
    along it are not alike."""
    tree = tree_of(family, operation, algorithm)
    return tree if tree and (operation in _WHOLE_BUFFER or tree == "linear") else EMPIRICAL


def collective_forms(collectives: Collectives) -> list[CollectiveForm]:
    """A form for every operation and algorithm with MIN_POINTS points or more.

    Coefficients are not negative and make times most likely whose logarithms scatter around the form's,
    normally or as Laplace has it; medians over launches. There is one protocol to begin with; further ones by
    the size of a message (a segment), a constant, what messages share (links of nodes, or a rank's way out),
    the busiest link as a bound, and as another the work of all ranks where they share cores come in one by
    one while AICc falls.
    """
    gamma = gamma_r_s_per_byte(collectives.reductions)
    draws = _draws(collectives.table)
    forms = []
    for key, rows in collectives.table.groupby(GROUP, sort=False):
        what, rows = dict(zip(GROUP, key, strict=True)), proper_rows(collectives, rows)
        structure = structure_of(rows.family.iloc[0], what["operation"], what["algorithm"])
        reader = PointReader(collectives, structure)
        points = reader.points(rows)
        if len(points.time_s) < MIN_POINTS:
            continue
        resampled = [reader.points(drawn) for draw in draws if len(drawn := _drawn(rows, draw))]
        forms.append(
            _form(
                what,
                structure,
                rows,
                points,
                resampled,
                gamma,
                collectives,
            )
        )
    return forms


def proper_rows(collectives: Collectives, rows: pandas.DataFrame) -> pandas.DataFrame:
    """The rows of one algorithm that count: inside a node, where ranks share cores, the scheduler is what is
    timed, and such rows are left out where others have two process counts. Between nodes they count: of nodes
    on one machine, links may be the limit all the same."""
    inside = np.array([len(np.unique(node)) == 1 for node, _ in collectives.placements], dtype=bool)
    proper = rows[~(rows.oversubscribed.astype(bool) & inside[rows.placement.to_numpy(dtype=int)])]
    return proper if proper.ranks.nunique() > 1 else rows


def warnings(collectives: Collectives) -> list[str]:
    """What to be wary of in the forms of collectives, and why an algorithm has none."""
    table, texts = collectives.table, []
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
            f"{operation}: {', '.join(names)} {_have(names)} one process count, from which any other is "
            "extrapolated; measure several, --ranks 2..8"
        )
    for operation, rows in table.groupby("operation", sort=False):
        proper = pandas.concat([proper_rows(collectives, of_one) for _, of_one in rows.groupby(GROUP)])
        for shared, told in (
            (rows.drop(proper.index), ", which is left out"),
            (proper[proper.oversubscribed.astype(bool)], ", so these times show the scheduler too"),
        ):
            if len(shared):
                counts = ", ".join(map(str, sorted(shared.ranks.unique())))
                texts.append(f"{operation}: at {counts} ranks there were more of them than cores{told}")
        if unsteady := int((~rows.converged.astype(bool)).sum()):
            texts.append(f"{operation}: {unsteady} of {len(rows)} samples had not converged")
    if len(table) and table.groupby([*GROUP, *POINT]).launch.nunique().max() < 2:
        texts.append("collectives: one launch of every point, so no intervals; measure 5 launches or more")
    return texts


def _have(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def gamma_r_s_per_byte(reductions: pandas.DataFrame) -> float:
    """Seconds per byte of a local reduction, the slope over sizes; 0 where it was not measured."""
    if reductions.empty:
        return 0.0
    medians = reductions.groupby(["size_bytes", "launch"]).time_s.median().groupby("size_bytes").median()
    medians = medians[(medians.index > 0) & (medians > 0)]
    if len(medians) < 2:
        return float((medians / medians.index).iloc[0]) if len(medians) else 0.0
    return float(fit_line(medians.index.to_numpy(dtype=float), medians.to_numpy())[1])


class PointReader:
    """Points from rows of the table; hops of every placement are counted once."""

    def __init__(self, collectives: Collectives, structure: str):
        self._placements, self._structure = collectives.placements, structure
        self._hops: dict[tuple[int, int], Any] = {}

    def points(self, rows: pandas.DataFrame, column: str = "time_s") -> Points:
        """Medians over launches of `column` (`time_s` or `mean_s`), without points that lack it."""
        medians = rows.groupby(POINT)[column].median().dropna().reset_index()
        hops = [self._count(*key) for key in zip(medians.placement, medians.root, strict=True)]
        return Points(
            make_calls(hops, medians.size_bytes.to_numpy(), medians.segment_bytes.to_numpy()),
            medians[column].to_numpy(dtype=float),
            medians.ranks.to_numpy(),
            medians.size_bytes.to_numpy(),
            medians.map_by.to_numpy(),
            medians.way.to_numpy(),
            int(rows.ranks[rows.oversubscribed.astype(bool)].min()) if rows.oversubscribed.any() else 0,
        )

    def _count(self, placement: int, root: int):
        key = placement, root
        if key not in self._hops:
            self._hops[key] = count_hops(self._structure, *self._placements[placement], root)
        return self._hops[key]


def search(points: Points, structure: str, gamma: float = 0.0) -> Fit:
    """The structure with the least AICc, elements added one at a time, with its coefficients."""
    terms = len(term_names(structure))
    begins = [Structure(gamma_r_s_per_byte=value) for value in sorted({0.0, gamma})]
    best = min((fit(points, one, terms) for one in begins), key=lambda one: one.aicc)
    while True:
        found = [fit(points, one, terms) for one in _larger(points, best.structure)]
        allowed = [one for one in found if POINTS_PER_PARAMETER * one.num_parameters <= len(points.time_s)]
        better = min(allowed, key=lambda one: one.aicc, default=best)
        if not better.aicc < best.aicc:
            return best
        best = better


def fit(points: Points, structure: Structure, terms: int) -> Fit:
    """The coefficients of `structure` that make the times most likely."""
    columns, features, part = _features(points, structure, terms)
    offset_s = structure.gamma_r_s_per_byte * points.calls.reduced_bytes
    fits = []
    for absolute in (False, True):
        found = _most_likely(features, part, points.time_s, offset_s, absolute)
        costs = _costs(structure, terms, columns, found)
        # A measured gamma is no parameter of this fit.
        num_parameters = int((found > 0).sum()) + len(structure.min_bytes) - 1 + 1
        criterion = logarithmic_aicc(points.time_s, collective_time_s(points.calls, costs), num_parameters)
        fits.append(Fit(structure, costs, num_parameters, criterion))
    return min(fits, key=lambda one: one.aicc)


def logarithmic_aicc(time_s: np.ndarray, predicted_s: np.ndarray, num_parameters: int) -> float:
    """AICc of times whose logarithms scatter around a prediction's: of T itself, in microseconds, with the
    Jacobian, - sum ln T in ln L."""
    residual = np.log(np.maximum(predicted_s, LEAST_SHARE * time_s) / time_s)
    return aicc(residual, num_parameters) + 2 * float(np.log(time_s * 1e6).sum())


def aicc(residual: np.ndarray, num_parameters: int) -> float:
    """AICc of normal or of Laplace residuals, whichever are more likely, their spread among the parameters;
    inf where it has no value.

    A launch that something else disturbed leaves residuals far off, which normal ones cannot be: forms would
    be chosen for it alone. ln L = -n/2 (ln(2 pi s^2) + 1) with s^2 the mean square, or -n (ln(2 b) + 1) with
    b the mean absolute residual.
    """
    count = len(residual)
    if count - num_parameters - 1 <= 0:
        return np.inf
    # Residuals of exact data vanish: a spread below rounding says nothing more.
    variance = max(float(np.mean(residual**2)), 1e-18)
    spread = max(float(np.mean(np.abs(residual))), 1e-9)
    normal = -count / 2 * (np.log(2 * np.pi * variance) + 1)
    log_likelihood = max(normal, -count * (np.log(2 * spread) + 1))
    correction = 2 * num_parameters * (num_parameters + 1) / (count - num_parameters - 1)
    return float(2 * num_parameters - 2 * log_likelihood + correction)


def held_out_error(points: Points, values: np.ndarray, fitted: Fit, structure: str) -> float | None:
    """Median relative error where each of `values` is left out in turn, the structure kept."""
    distinct = np.unique(values)
    if len(distinct) < 3:
        return None
    terms = len(term_names(structure))
    errors = []
    for value in distinct:
        rest, left_out = points.only(values != value), points.only(values == value)
        errors.append(relative_errors(fit(rest, fitted.structure, terms).predict_s(left_out), left_out))
    return float(np.median(np.concatenate(errors)))


def extrapolation_split(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Masks of the points to train on, with at most half of the most processes, and of those beyond; None
    where that leaves fewer than two process counts to train on."""
    small = ranks <= ranks.max() / 2
    return (small, ~small) if len(np.unique(ranks[small])) >= 2 else None


def extrapolation_error(points: Points, structure: str, gamma: float) -> float | None:
    """Median relative error beyond half of the most processes, everything sought anew below."""
    split = extrapolation_split(points.ranks)
    if split is None:
        return None
    train, test = (points.only(mask) for mask in split)
    return float(np.median(relative_errors(search(train, structure, gamma).predict_s(test), test)))


def relative_errors(predicted_s: np.ndarray, points: Points) -> np.ndarray:
    return np.abs(predicted_s / points.time_s - 1)


def _larger(points: Points, structure: Structure) -> Iterator[Structure]:
    """Structures with one more element."""
    sizes = np.unique(points.calls.message_bytes)
    for size in sizes[1:]:
        starts = tuple(sorted({*structure.min_bytes, int(size)}))
        # One size cannot tell a protocol's bandwidth: only the smallest sizes may be alone.
        enough = (np.histogram(sizes, [*starts, np.inf])[0][1:] >= 2).all()
        if len(structure.min_bytes) < len(starts) <= MAX_PROTOCOLS and enough:
            yield replace(structure, min_bytes=starts)
    if not structure.constant:
        yield replace(structure, constant=True)
    for name, beta in points.calls.shared_beta.items():
        if name != structure.shared and not np.array_equal(points.calls.beta, beta):
            yield replace(structure, shared=name)
    if not structure.link and points.calls.link_bytes.any():
        yield replace(structure, link=True)
    if not structure.work_from_ranks and points.crowded_from_ranks:
        yield replace(structure, work_from_ranks=points.crowded_from_ranks)


def _features(points: Points, structure: Structure, terms: int) -> tuple[list[tuple], np.ndarray, np.ndarray]:
    """What every coefficient is multiplied by, (n, p), which one each column is, and (p,) of what it is: the
    way through the tree, the link, or the work."""
    calls = points.calls
    protocol = np.searchsorted(structure.min_bytes, calls.message_bytes, side="right") - 1
    beta = calls.beta_of(structure.shared)
    # Of a single process count only the first term can be told; of a single size only the latency.
    terms = terms if len(np.unique(points.ranks)) > 1 else 1
    columns: list[tuple] = []
    features: list[np.ndarray] = []
    for c in range(len(structure.min_bytes)):
        inside = protocol == c
        sizes = np.unique(calls.message_bytes[inside])
        tables = [("alpha_s", calls.alpha)]
        if len(sizes) > 1:
            tables.append(("beta_s_per_byte", beta))
        for name, table in tables:
            for t in range(terms):
                for level in np.flatnonzero((table[inside, t] > 0).any(axis=0)):
                    columns.append((name, c, t, level))
                    features.append(np.where(inside, table[:, t, level], 0.0))
    if structure.constant:
        columns.append(("constant_s",))
        features.append(np.ones(len(protocol)))
    part = [_WAY] * len(columns)
    if structure.link:
        columns.append(("link_s_per_byte",))
        features.append(calls.link_bytes)
        part.append(_LINK)
    if structure.work_from_ranks:
        crowded = calls.ranks >= structure.work_from_ranks
        columns += [("work_alpha_s",), ("work_beta_s_per_byte",)]
        features += [calls.messages * crowded, calls.moved_bytes * crowded]
        part += [_WORK] * 2
    return columns, np.array(features).T, np.array(part)


def _costs(structure: Structure, terms: int, columns: list[tuple], found: np.ndarray) -> CollectiveCosts:
    shape = (len(structure.min_bytes), terms, 3)
    tables = {"alpha_s": np.zeros(shape), "beta_s_per_byte": np.zeros(shape)}
    scalars: dict[str, float] = {}
    for (name, *where), value in zip(columns, found.tolist(), strict=True):
        if where:
            tables[name][tuple(where)] = value
        else:
            scalars[name] = value
    return CollectiveCosts(
        np.array(structure.min_bytes),
        **tables,
        **scalars,
        gamma_r_s_per_byte=structure.gamma_r_s_per_byte,
        work_from_ranks=structure.work_from_ranks,
        shared=structure.shared,
    )


def _most_likely(
    features: np.ndarray, part: np.ndarray, time_s: np.ndarray, offset_s: np.ndarray, absolute: bool
) -> np.ndarray:
    """Coefficients of 0 or more with the least squares, or the least `absolute` values, of
    ln(predicted/measured), where the way, the link or the work takes longest.

    Given which of them each point waits for, the model is linear: that and the coefficients take turns.
    Weights make the squares of differences have the slope that the squares, or absolute values, of logarithms
    have at the prediction before; 1/T to begin with.
    """
    parts = np.unique(part)
    guess = _guess(features, part, time_s)
    best, least = guess, np.inf
    weight = 1 / time_s
    waits_for = parts[_parts_s(features, part, guess, offset_s).argmax(axis=0)]
    for _ in range(MAX_TURNS if len(parts) == 1 and not absolute else MAX_TURNS_OF_PARTS):
        active = features * (part[None, :] == waits_for[:, None])
        rest_s = time_s - np.where(waits_for == _WAY, offset_s, 0.0)
        found = _not_negative(active * weight[:, None], rest_s * weight)
        parts_s = _parts_s(features, part, found, offset_s)
        predicted_s = np.maximum(parts_s.max(axis=0), LEAST_SHARE * time_s)
        logarithm = np.log(predicted_s / time_s)
        size = np.abs(logarithm)
        total = float((size if absolute else size**2).sum())
        before, waits_for = waits_for, parts[parts_s.argmax(axis=0)]
        settled = total >= least * (1 - 1e-6) and np.array_equal(before, waits_for)
        if total < least:
            best, least = found, total
        if settled:
            break
        difference_s = predicted_s - time_s
        near = np.abs(difference_s) < 1e-6 * time_s
        ratio = np.where(near, 1 / time_s, logarithm / np.where(near, 1.0, difference_s))
        weight = np.sqrt(ratio / predicted_s)
        if absolute:
            weight /= np.sqrt(np.maximum(size, NEAR))
    return best


def _parts_s(
    features: np.ndarray, part: np.ndarray, coefficients: np.ndarray, offset_s: np.ndarray
) -> np.ndarray:
    """(parts, n) seconds of the way, the link and the work, of those that there are."""
    return np.array(
        [
            features[:, part == one] @ coefficients[part == one] + (offset_s if one == _WAY else 0.0)
            for one in np.unique(part)
        ]
    )


def _guess(features: np.ndarray, part: np.ndarray, time_s: np.ndarray) -> np.ndarray:
    """What the quickest points allow each coefficient beside the way: none takes longer than was measured.
    The way then explains what is left of the others."""
    guess = np.zeros(features.shape[1])
    for column in np.flatnonzero(part != _WAY):
        inside = features[:, column] > 0
        if inside.any():
            guess[column] = np.percentile(time_s[inside] / features[inside, column], QUICKEST_PERCENT)
    others_s = (features * (part != _WAY) * guess).max(axis=1, initial=0.0)
    free = others_s < FREE_SHARE * time_s
    way = part == _WAY
    if free.sum() >= max(way.sum(), 1):
        guess[way] = _not_negative(features[np.ix_(free, way)] / time_s[free, None], np.ones(free.sum()))
    return guess


def _not_negative(features: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Least squares with coefficients of 0 or more; columns are scaled, as they differ by ten powers of
    ten."""
    scale = np.sqrt((features**2).sum(axis=0))
    scale[scale == 0] = 1.0
    found, _ = nnls(features / scale, values, maxiter=30 * features.shape[1])
    return found / scale


def _draws(table: pandas.DataFrame) -> list[list[str]]:
    """Launches drawn with replacement, NUM_REPLICATES times, among those that measured the same ways at the
    same process counts. All algorithms use the same draws, so that those of one launch share their luck."""
    strata: dict[frozenset, list[str]] = {}
    for launch, rows in table.groupby("launch"):
        points = rows[["operation", "way", "map_by", "ranks"]].drop_duplicates()
        strata.setdefault(frozenset(map(tuple, points.to_numpy())), []).append(launch)
    if all(len(members) < 2 for members in strata.values()):
        return []  # one launch of everything: drawn again it is the same
    random = np.random.default_rng(SEED)
    return [
        [launch for members in strata.values() for launch in random.choice(members, len(members))]
        for _ in range(NUM_REPLICATES)
    ]


def _drawn(rows: pandas.DataFrame, draw: Sequence[str]) -> pandas.DataFrame:
    times = pandas.Series(draw).value_counts()
    count = rows.launch.map(times).fillna(0).astype(int)
    return rows.loc[rows.index.repeat(count)]


def _form(
    what: Mapping[str, str],
    structure: str,
    rows: pandas.DataFrame,
    points: Points,
    resampled: Sequence[Points],
    gamma: float,
    collectives: Collectives,
) -> CollectiveForm:
    found = search(points, structure, gamma)
    terms = len(term_names(structure))
    extra: dict[str, Any] = {
        "error": float(np.median(relative_errors(found.predict_s(points), points))),
        "points": len(points.time_s),
        "aicc": found.aicc,
    }
    for name, error in (
        ("held_out_error", held_out_error(points, points.ranks, found, structure)),
        ("held_out_error_sizes", held_out_error(points, points.size_bytes, found, structure)),
        ("extrapolation_error", extrapolation_error(points, structure, gamma)),
    ):
        extra |= {} if error is None else {name: error}
    if rows.oversubscribed.any():
        extra["oversubscribed"] = True
    if (family := rows.family.iloc[0]) != what["mpi"]:
        extra["family"] = family
    return CollectiveForm(
        what["operation"],
        what["algorithm"],
        what["mpi"],
        _parameters(structure, found.costs),
        None if structure == EMPIRICAL else structure,
        tuple(int(one) for one in np.unique(rows.segment_bytes)),
        tuple(rows.map_by.unique()),
        tuple(np.array(LEVELS)[(points.calls.alpha > 0).any(axis=(0, 1))].tolist()),
        collectives.machine,
        {name: (int(rows[name].min()), int(rows[name].max())) for name in ("ranks", "size_bytes")},
        tuple(_parameters(structure, fit(drawn, found.structure, terms).costs) for drawn in resampled),
        extra,
    )


def _parameters(structure: str, costs: CollectiveCosts) -> CollectiveParameters:
    values = vars(costs) | {"min_bytes": tuple(int(one) for one in costs.min_bytes)}
    return CollectiveParameters(structure, **values)
