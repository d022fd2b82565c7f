"""Select the coefficients of a form of collectives by AICc, and find their most likely values."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from earlybird.fit import stepwise
from earlybird.models.collective import (
    BETWEEN_NODES,
    Calls,
    CollectiveCosts,
    collective_time_s,
    term_names,
)
from earlybird.models.regression import not_negative

# An element with a coefficient of 0 changes AICc only by rounding and must not be added.
MIN_FALL = 1e-3
MAX_TURNS, MAX_TURNS_OF_PARTS = 8, 20
# Index of the path through the tree; the link and the work follow.
_PATH = 0
_LINK_COLUMN = ("beta_s_per_byte", 0, BETWEEN_NODES)
# Initial guess: the link, or the work, gets the value that this percentile of the points allows; points at
# which it takes less than a share of the time wait for the path.
QUICKEST_PERCENT, FREE_SHARE = 5, 0.7
# With absolute values, a logarithm below this gets no larger weight.
NEAR = 0.01
# Penalty of coefficients towards 0, relative to the 1 of all points together: it decides between two types of
# hops with numbers that agree to a hundredth.
PULL = 1e-2
# Candidates for the burst of an idle link: first shares of each message size, then factors of the value
# found.
BURST_SHARES = (0.35, 0.5, 0.7, 1.0)
BURST_STEPS = (0.85, 0.95, 1.05, 1.15)
# Predictions below this share of the measured time count as this share.
MIN_SHARE = 1e-3


@dataclass(frozen=True, eq=False)
class Points:
    """The measured points of one algorithm, (n,) each; times are medians over launches."""

    calls: Calls
    time_s: np.ndarray
    ranks: np.ndarray
    size_bytes: np.ndarray
    map_by: np.ndarray
    path: np.ndarray
    crowded_from_ranks: int = 0  # the fewest ranks that shared cores; 0 where none did

    def only(self, chosen: np.ndarray) -> "Points":
        arrays = {name: item[chosen] for name, item in vars(self).items() if isinstance(item, np.ndarray)}
        return replace(self, calls=self.calls.only(chosen), **arrays)


@dataclass(frozen=True)
class Structure:
    """The coefficients that the form has: protocols by message size, and elements other than hops.

    `gamma_r_s_per_byte` comes from local reductions and is not fitted.
    """

    min_bytes: tuple[int, ...] = (0,)
    constant: bool = False
    link: bool = False
    work_from_ranks: int = 0
    shared: str | None = None
    burst_bytes: float = 0.0
    gamma_r_s_per_byte: float = 0.0


@dataclass(frozen=True, eq=False)
class Fit:
    """A structure with its coefficients; `num_parameters` counts those above 0, switches and the spread."""

    structure: Structure
    costs: CollectiveCosts
    num_parameters: int
    criterion: float  # AICc

    def predict_s(self, points: Points) -> np.ndarray:
        return collective_time_s(points.calls, self.costs)


def search(points: Points, structure: str, gamma: float = 0.0) -> Fit:
    """Return the structure with the lowest AICc, found by adding one element at a time, with its
    coefficients.
    """
    terms = len(term_names(structure))

    def larger(best: Fit) -> Iterator[Fit]:
        return (fit(points, one, terms) for one in _larger(points, best.structure))

    begins = [fit(points, Structure(gamma_r_s_per_byte=value), terms) for value in sorted({0.0, gamma})]
    return stepwise.search(min(begins, key=lambda one: one.criterion), larger, len(points.time_s), MIN_FALL)


def fit(points: Points, structure: Structure, terms: int) -> Fit:
    """Return the most likely coefficients of `structure`."""
    columns, bounds = _bounds(points, structure, terms)
    guess = _guess(bounds.features[0], points.time_s)
    fits = []
    for absolute in (False, True):
        found = _most_likely(bounds, points.time_s, absolute, guess)
        costs = _costs(structure, terms, columns, found)
        # A measured gamma is no parameter of this fit.
        switches = len(structure.min_bytes) - 1 + (structure.burst_bytes > 0)
        num_parameters = int((found > 0).sum()) + switches + 1
        criterion = logarithmic_aicc(points.time_s, collective_time_s(points.calls, costs), num_parameters)
        fits.append(Fit(structure, costs, num_parameters, criterion))
    return min(fits, key=lambda one: one.criterion)


def logarithmic_aicc(time_s: np.ndarray, predicted_s: np.ndarray, num_parameters: int) -> float:
    """Compute the AICc for residuals of ln T, converted to the likelihood of T in microseconds by the
    Jacobian, - sum ln T in ln L.
    - sum ln T in ln L."""
    residual = np.log(np.maximum(predicted_s, MIN_SHARE * time_s) / time_s)
    return aicc(residual, num_parameters) + 2 * float(np.log(time_s * 1e6).sum())


def aicc(residual: np.ndarray, num_parameters: int) -> float:
    """Compute the AICc of normal or Laplace residuals, whichever are more likely; their spread counts as a
    parameter; inf if AICc is undefined.

    A disturbed launch leaves outliers. With normal residuals alone they would decide the choice of the
    form. ln L = -n/2 (ln(2 pi s^2) + 1) with s^2 the mean square, or -n (ln(2 b) + 1) with
    b the mean absolute residual.
    """
    count = len(residual)
    if count - num_parameters - 1 <= 0:
        return np.inf
    # Residuals of exact data vanish: limit the spread to the rounding error.
    variance = max(float(np.mean(residual**2)), 1e-18)
    spread = max(float(np.mean(np.abs(residual))), 1e-9)
    normal = -count / 2 * (np.log(2 * np.pi * variance) + 1)
    log_likelihood = max(normal, -count * (np.log(2 * spread) + 1))
    correction = 2 * num_parameters * (num_parameters + 1) / (count - num_parameters - 1)
    return float(2 * num_parameters - 2 * log_likelihood + correction)


def _larger(points: Points, structure: Structure) -> Iterator[Structure]:
    """Yield the structures with one more element."""
    sizes = np.unique(points.calls.message_bytes)
    for starts in stepwise.with_another_protocol(structure.min_bytes, sizes):
        yield replace(structure, min_bytes=starts)
    if not structure.constant:
        yield replace(structure, constant=True)
    for name, beta in points.calls.shared_beta.items():
        if name != structure.shared and not np.array_equal(points.calls.beta, beta):
            yield replace(structure, shared=name)
    if not structure.link and not structure.burst_bytes and points.calls.link_bytes.any():
        yield replace(structure, link=True)
    if not structure.burst_bytes and points.calls.idle_hops.any():
        # Shares of sizes that double coincide, and a share of one byte may be none.
        for burst_bytes in sorted({round(share * size) for size in sizes for share in BURST_SHARES} - {0}):
            yield replace(structure, link=False, burst_bytes=float(burst_bytes))
    if structure.burst_bytes:
        for step in BURST_STEPS:
            yield replace(structure, burst_bytes=float(round(step * structure.burst_bytes)))
    if not structure.work_from_ranks and points.crowded_from_ranks:
        yield replace(structure, work_from_ranks=points.crowded_from_ranks)


def _bounds(points: Points, structure: Structure, terms: int) -> tuple[list[tuple], stepwise.MaxOfLines]:
    """Return the coefficient of each parameter, and its factors in the three bounds: the path through the
    tree, the link and the work.
    """
    calls = points.calls
    protocol = np.searchsorted(structure.min_bytes, calls.message_bytes, side="right") - 1
    beta = calls.beta_of(structure.shared, structure.burst_bytes)
    # A single process count determines only the first term; a single size only the latency.
    terms = terms if len(np.unique(points.ranks)) > 1 else 1
    nothing = np.zeros(len(protocol))
    columns: list[tuple] = []
    features: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for c in range(len(structure.min_bytes)):
        inside = protocol == c
        sizes = np.unique(calls.message_bytes[inside])
        tables = [("alpha_s", calls.alpha, calls.alpha)]
        if len(sizes) > 1:
            # If idle links carry whole messages at once, only the busiest link determines the cost per byte.
            tables.append(("beta_s_per_byte", beta, calls.beta_of(structure.shared)))
        for name, table, passed in tables:
            for t in range(terms):
                for level in np.flatnonzero((passed[inside, t] > 0).any(axis=0)):
                    columns.append((name, c, t, level))
                    # A link with a burst has the same rate as its hops, but carries all bytes.
                    of_link = structure.burst_bytes > 0 and (name, t, level) == _LINK_COLUMN
                    features.append(
                        (
                            np.where(inside, table[:, t, level], 0.0),
                            np.where(inside, calls.link_bytes, 0.0) if of_link else nothing,
                            nothing,
                        )
                    )
    if structure.constant:
        columns.append(("constant_s",))
        features.append((np.ones(len(protocol)), nothing, nothing))
    if structure.link:
        columns.append(("link_s_per_byte",))
        features.append((nothing, calls.link_bytes, nothing))
    if structure.work_from_ranks:
        crowded = calls.ranks >= structure.work_from_ranks
        columns += [("work_alpha_s",), ("work_beta_s_per_byte",)]
        features += [(nothing, nothing, of_all * crowded) for of_all in (calls.messages, calls.moved_bytes)]
    bounds = np.array(features).transpose(1, 2, 0)
    offset_s = np.zeros(bounds.shape[:2])
    offset_s[_PATH] = structure.gamma_r_s_per_byte * calls.reduced_bytes
    return columns, stepwise.MaxOfLines(bounds[None], offset_s[None])


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
        burst_bytes=structure.burst_bytes,
    )


def _most_likely(
    bounds: stepwise.MaxOfLines, time_s: np.ndarray, absolute: bool, guess: np.ndarray
) -> np.ndarray:
    """Return the coefficients of 0 or more that minimise the squares, or the `absolute` values, of
    ln(predicted/measured).

    The fit begins at `guess` and alternates between the bound that each point waits for and the coefficients.
    The weights, 1/T at first, give the squared differences the slope of the squares, or absolute values, of
    the logarithms at the previous prediction.
    """
    path_alone = not bounds.features[0, 1:].any()
    best, least = guess, np.inf
    weight = 1 / time_s
    waits_for = bounds.deciding(guess)
    for _ in range(MAX_TURNS if path_alone and not absolute else MAX_TURNS_OF_PARTS):
        found = bounds.fit(waits_for, time_s, weight, PULL)
        predicted_s = np.maximum(bounds.predict_s(found), MIN_SHARE * time_s)
        logarithm = np.log(predicted_s / time_s)
        size = np.abs(logarithm)
        total = float((size if absolute else size**2).sum())
        before, waits_for = waits_for, bounds.deciding(found)
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


def _guess(features: np.ndarray, time_s: np.ndarray) -> np.ndarray:
    """Return initial coefficients: those of link and work at the value that the fastest points allow, without
    exceeding measured times. The path then explains the remaining points.
    """
    off_path = features[1:].sum(axis=0)
    guess = np.zeros(features.shape[2])
    for column in np.flatnonzero(off_path.any(axis=0)):
        inside = off_path[:, column] > 0
        guess[column] = np.percentile(time_s[inside] / off_path[inside, column], QUICKEST_PERCENT)
    others_s = (off_path * guess).max(axis=1, initial=0.0)
    free = others_s < FREE_SHARE * time_s
    path = features[_PATH].any(axis=0)
    if free.sum() >= max(path.sum(), 1):
        path_features = features[_PATH][np.ix_(free, path)]
        guess[path] = not_negative(path_features / time_s[free, None], np.ones(free.sum()), PULL)
    return guess
