"""The three regressions of Insaghi's paper on collectives, as tables and as forms to compare."""

from dataclasses import dataclass

import numpy as np
import pandas

from earlybird.fit.collective import POINT
from earlybird.fit.collective_search import aicc
from earlybird.models.regression import least_squares

US = 1e6
# The paper does not state the base of its logarithm of times; 2 fits its times of one byte.
GRID_BASE = 2.0
# Limits of the fit of least absolute residuals.
MAX_TURNS, NEAR_SHARE = 30, 1e-3


@dataclass(frozen=True)
class Row:
    """A line of a table as R prints it."""

    term: str
    estimate: float
    std_error: float
    t_value: float
    p_value: float


@dataclass(frozen=True)
class Regression:
    """A regression of Insaghi's paper.

    Attributes
    ----------
    form : 1 (one size, nodes filled in turn), 2 (one size, ranks dealt to nodes) or 3 (sizes and ranks).
    response : the response variable: "T", "ln T" or "log2 T", T in microseconds.
    r_squared : coefficient of determination as in the paper: without an intercept relative to 0;
        `r_squared_centred` is relative to the mean.
    """

    operation: str
    what: str
    form: int
    response: str
    rows: tuple[Row, ...]
    r_squared: float
    r_squared_centred: float
    points: int


@dataclass(frozen=True, eq=False)
class Grid:
    """The points to regress on, (n,) each; times in microseconds."""

    ranks: np.ndarray
    size_bytes: np.ndarray
    method: np.ndarray
    map_by: np.ndarray
    time_us: np.ndarray
    break_ranks: int

    def only(self, chosen: np.ndarray) -> "Grid":
        arrays = {name: item[chosen] for name, item in vars(self).items() if isinstance(item, np.ndarray)}
        return Grid(**arrays, break_ranks=self.break_ranks)


def grid(rows: pandas.DataFrame, break_ranks: int, column: str = "time_s") -> Grid:
    """Return the medians over launches of `column`; `break_ranks` are the cores of a node."""
    medians = rows.groupby(POINT)[column].median().dropna().reset_index()
    names = ("ranks", "size_bytes", "method", "map_by")
    arrays = {name: medians[name].to_numpy() for name in names}
    return Grid(**arrays, time_us=medians[column].to_numpy(dtype=float) * US, break_ranks=break_ranks)


def is_logarithmic(form: int, algorithm: str) -> bool:
    """Return whether the form uses the logarithm of times: forms 1 and 2 for binomial algorithms, form 3 for
    all.
    """
    return form == 3 or algorithm.endswith("binomial")


def design(points: Grid, form: int, algorithm: str) -> dict[str, np.ndarray]:
    """Return the columns of a form, by the names that R prints."""
    ranks = points.ranks.astype(float)
    if form == 3:
        columns = {}
        pairs = sorted({*zip(points.method.tolist(), points.map_by.tolist(), strict=True)})
        names = {pair: f"Algorithm_Allocation{pair[0].capitalize()}-{pair[1]}" for pair in pairs}
        here = {pair: (points.method == pair[0]) & (points.map_by == pair[1]) for pair in pairs}
        for pair in pairs:
            columns[f"log2(MPI_Processes):{names[pair]}"] = np.where(here[pair], np.log2(ranks), 0.0)
        for pair in pairs:
            columns[f"{names[pair]}:Message_Size"] = np.where(here[pair], points.size_bytes, 0.0)
    elif form == 2:
        columns = {"(Intercept)": np.ones_like(ranks)} if is_logarithmic(2, algorithm) else {}
        columns["MPI_Processes"] = ranks
    else:
        beyond = ranks > points.break_ranks
        test = f"I(MPI_Processes > {points.break_ranks})"
        columns = {
            "MPI_Processes": ranks,
            f"{test}FALSE": (~beyond).astype(float),
            f"{test}TRUE": beyond.astype(float),
            f"MPI_Processes:{test}TRUE": ranks * beyond,
        }
    return columns


def _independent(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the columns without those that are 0 or linearly dependent on earlier ones, which R also leaves
    out.
    """
    kept: dict[str, np.ndarray] = {}
    for name, column in columns.items():
        scale = float(np.abs(column).max(initial=0.0))
        if not scale:
            continue
        table = np.array([*kept.values(), column]).T / [*(np.abs(one).max() for one in kept.values()), scale]
        if np.linalg.matrix_rank(table) > len(kept):
            kept[name] = column
    return kept


def response(points: Grid, form: int, algorithm: str) -> np.ndarray:
    if not is_logarithmic(form, algorithm):
        return points.time_us
    return np.log(points.time_us) / (np.log(GRID_BASE) if form == 3 else 1.0)


@dataclass(frozen=True, eq=False)
class InsaghiFit:
    """A form with its estimates, by the names of its columns."""

    form: int
    algorithm: str
    estimates: dict[str, float]
    aicc: float

    @property
    def num_parameters(self) -> int:
        return len(self.estimates) + 1

    def predict_us(self, points: Grid) -> np.ndarray:
        columns = design(points, self.form, self.algorithm)
        y = sum((self.estimates.get(name, 0.0) * column for name, column in columns.items()), np.zeros(1))
        y = np.broadcast_to(y, points.ranks.shape)
        if not is_logarithmic(self.form, self.algorithm):
            return y
        with np.errstate(over="ignore"):
            return np.power(GRID_BASE if self.form == 3 else np.e, y)


def fit_insaghi_form(points: Grid, form: int, algorithm: str) -> InsaghiFit:
    """Fit by least squares as in the paper, or by least absolute residuals if they are more likely, as for
    the physical forms. AICc uses the likelihood of T itself; for logarithms it includes the Jacobian.
    """
    columns = _independent(design(points, form, algorithm))
    y, x = response(points, form, algorithm), np.array(list(columns.values())).T
    scale = np.abs(x).max(axis=0)
    squares = np.linalg.lstsq(x / scale, y, rcond=None)[0]
    scaled = (squares, _least_absolute(x / scale, y, squares))
    fits = [(aicc(y - x / scale @ found, len(found) + 1), found / scale) for found in scaled]
    criterion, estimates = min(fits, key=lambda one: one[0])
    if is_logarithmic(form, algorithm):
        # d(log_b T)/dT = 1/(T ln b)
        base = np.log(GRID_BASE) if form == 3 else 1.0
        criterion += 2 * float(np.log(points.time_us * base).sum())
    return InsaghiFit(form, algorithm, dict(zip(columns, estimates.tolist(), strict=True)), criterion)


def _least_absolute(x: np.ndarray, y: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """Fit by iteratively reweighted least squares, with weights of one over the previous residuals."""
    found = begin
    # Limit the weights: residuals of 0 would fix the line.
    near = max(NEAR_SHARE * np.abs(y - x @ begin).mean(), 1e-12 * np.abs(y).max()) or 1.0
    for _ in range(MAX_TURNS):
        root = np.sqrt(1 / np.maximum(np.abs(y - x @ found), near))
        found = np.linalg.lstsq(x * root[:, None], y * root, rcond=None)[0]
    return found


def regressions(table: pandas.DataFrame, break_ranks: int, column: str = "time_s") -> list[Regression]:
    """Return every fit of the paper that these times allow, form by form, in the order of the paper.

    Forms 1 and 2 use the smallest size of an operation, form 3 all sizes above zero and all algorithms and
    mappings of an operation together.
    """
    found = []
    for operation, rows in table.groupby("operation", sort=False):
        small = rows[rows.size_bytes == smallest_size(rows)]
        for method, of_method in small.groupby("method", sort=False):
            for map_by, mapped in of_method.groupby("map_by", sort=False):
                form = 2 if map_by == "node" else 1
                points = grid(mapped, break_ranks, column)
                found.append(_regression(operation, f"{method} by {map_by}", points, form, str(method)))
        sized = rows[rows.size_bytes > 0]
        if sized.size_bytes.nunique() > 1:
            found.append(_regression(operation, "all sizes", grid(sized, break_ranks, column), 3, ""))
    return [one for one in found if one is not None]


def smallest_size(rows: pandas.DataFrame) -> int:
    return int(rows.size_bytes.min())


def _regression(operation: str, what: str, points: Grid, form: int, method: str) -> Regression | None:
    """Return the regression; None if there are no more points than coefficients."""
    algorithm = method.partition(":")[0]
    columns = _independent(design(points, form, algorithm)) if len(points.ranks) else {}
    if len(points.ranks) <= len(columns) or len(np.unique(points.ranks)) < 2:
        return None
    y, x = response(points, form, algorithm), np.array(list(columns.values())).T
    # Columns of sizes and of logarithms differ by orders of magnitude: scaling keeps the rank test reliable.
    scale = np.abs(x).max(axis=0)
    fitted = least_squares(x / scale, y)
    residual = float((fitted.residuals**2).sum())
    centred = 1 - residual / max(float(((y - y.mean()) ** 2).sum()), np.finfo(float).tiny)
    plain = 1 - residual / max(float((y**2).sum()), np.finfo(float).tiny)
    rows = tuple(
        Row(name, float(b / s), float(e / s), float(t), float(p))
        for name, b, e, t, p, s in zip(
            columns, fitted.coefficients, fitted.standard_errors, fitted.t, fitted.p, scale, strict=True
        )
    )
    logarithm = {1: "ln T", 2: "ln T", 3: "log2 T"}[form] if is_logarithmic(form, algorithm) else "T"
    return Regression(
        operation,
        what,
        form,
        logarithm,
        rows,
        centred if "(Intercept)" in columns else plain,
        centred,
        len(y),
    )
