"""Predict the time of a collective operation on a placement, for each algorithm of a profile."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from earlybird.data.collective_algorithms import (
    FAMILY_NAMES,
    OPERATIONS,
    ROOTED,
    UNMODELLED,
    Method,
    parse_method,
    unmet_requirement,
    unmodelled_hint,
)
from earlybird.data.collective_form import CollectiveForm, CollectiveParameters
from earlybird.data.errors import InputError
from earlybird.data.kernels import COLLECTIVE
from earlybird.data.layout import MAX_RANKS, Layout, level_phrase, parse_layout
from earlybird.data.levels import LEVELS, MAPPINGS
from earlybird.data.measure_commands import LaunchOptions, measure_command
from earlybird.data.profile import Profile
from earlybird.data.shell_commands import quoted
from earlybird.data.units import format_bytes, size_argument
from earlybird.models.collective import (
    Calls,
    CollectiveCosts,
    Hops,
    collective_time_s,
    count_hops,
    make_calls,
)
from earlybird.predict.published_collectives import Reference, references
from earlybird.predict.ranges import extrapolations, interval

# 95 % of a normal distribution lie within this multiple of its median absolute deviation.
_BOUND_OVER_MEDIAN = 2.9
# The layout of a number of ranks that has only hops of this type.
_ALL_ON = {"intra_socket": "1x1x{}", "inter_socket": "1x{}x1", "inter_node": "{}x1x1"}


# Enough for a form of every algorithm, also of those for large messages alone.
SIZES = "8,256,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB"
# A form has as many points or more; above the bound, further sizes are smaller ones.
_POINTS, _MAX_POINTS, _LARGE_BYTES = 4, 8, 4096


def sizes_around(recorded_bytes: Iterable[int]) -> str:
    """Return the value of `--sizes` that a form needs to predict these sizes: the sizes in whole doubles, and
    further sizes around them if they are too few.
    """
    sizes = sorted({max(8, size // 8 * 8) for size in recorded_bytes})
    if len(sizes) > _MAX_POINTS:
        sizes = [sizes[k * (len(sizes) - 1) // (_MAX_POINTS - 1)] for k in range(_MAX_POINTS)]
    while len(sizes) < _POINTS:
        is_large = sizes[-1] >= _LARGE_BYTES and sizes[0] > 8
        sizes = sorted({*sizes, max(8, sizes[0] // 32 * 8) if is_large else 4 * sizes[-1]})
    return ",".join(size_argument(size) for size in sizes)


def measure_hint(
    operation: str,
    launch: LaunchOptions,
    ranks: int | None = None,
    layout: str | None = None,
    map_by: str | None = None,
    sizes: str = SIZES,
) -> str:
    """Return the command that adds an operation to a profile: a form has four points or more, also of
    algorithms for large messages alone, and a barrier has no sizes. Without `ranks`, all ranks of the layout
    are measured.
    """
    is_barrier = operation == "barrier"
    points = {
        "op": operation,
        "ranks": "2,4,6,8" if is_barrier else ranks,
        "layout": None if is_barrier else layout,
        "map-by": None if map_by == MAPPINGS[0] else map_by,
        "sizes": None if is_barrier else sizes,
    }
    command = measure_command(COLLECTIVE.name, points, launch)
    profile = quoted(f"{operation}.json")
    return f"`{command}` and `earlybird fit RUN -o {profile}`, then add `--profile {profile}`"


@dataclass(frozen=True)
class Placed:
    """The placement of the ranks of a call: the first `ranks` of a layout, given as `shape` and filled by
    `map_by`.
    """

    layout: Layout
    ranks: int
    map_by: str
    root: int = 0
    shape: str = ""

    @property
    def node(self) -> np.ndarray:
        return self.layout.node[: self.ranks]

    @property
    def socket(self) -> np.ndarray:
        return self.layout.socket[: self.ranks]


@dataclass(frozen=True, eq=False)
class AlgorithmModel:
    """A model of one algorithm on one placement, with the coefficients of its times.

    `hops` are counted once. `replicates` are coefficients from resampled launches; replicate k of all
    algorithms uses the same draw. `measured` has the sizes and seconds of this placement, by segment size.
    """

    form: CollectiveForm
    hops: Hops
    costs: CollectiveCosts
    replicates: tuple[CollectiveCosts, ...] = ()
    measured: Mapping[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def time_s(self, size_bytes: float, segment_bytes: int = 0) -> float:
        """Return the seconds from the common start until the last rank is done.

        For algorithms without a known tree, the result is interpolated in logarithms between sizes measured
        on this placement: no form describes how the MPI's own choice changes with the size.
        """
        interpolated_s = self._interpolated_s(size_bytes, segment_bytes)
        return (
            self._by_form_s(self.costs, size_bytes, segment_bytes)
            if interpolated_s is None
            else interpolated_s
        )

    def drawn_s(self, size_bytes: float, segment_bytes: int = 0) -> np.ndarray:
        """Return the times of all replicates; an interpolated time has the relative spread of the replicates
        of the form.
        """
        drawn_s = self.drawn_form_s(size_bytes, segment_bytes)
        interpolated_s = self._interpolated_s(size_bytes, segment_bytes)
        form_s = self._by_form_s(self.costs, size_bytes, segment_bytes)
        return drawn_s if interpolated_s is None or not form_s else drawn_s * (interpolated_s / form_s)

    def measured_s(self, size_bytes: float, segment_bytes: int = 0) -> float | None:
        """Return the measured time of this call; None if it was not measured."""
        sizes, times_s = self.measured.get(segment_bytes, ((), ()))
        at = np.flatnonzero(np.asarray(sizes) == size_bytes)
        return float(times_s[at[0]]) if len(at) else None

    def measured_points(self) -> dict[tuple[int, int], float]:
        """Return the seconds measured on this placement, by size and segment size in bytes."""
        return {
            (int(size), segment): float(time_s)
            for segment, points in self.measured.items()
            for size, time_s in zip(*points, strict=True)
        }

    @property
    def error_bound(self) -> float:
        """The 95 % bound of |log(measured/predicted)| that follows from the median error at held-out
        points."""
        names = ("error", "held_out_error", "held_out_error_sizes")
        return math.log1p(_BOUND_OVER_MEDIAN * max(float(self.form.extra.get(name, 0.0)) for name in names))

    def form_s(self, size_bytes: float, segment_bytes: int = 0) -> float:
        """Return the seconds that the form predicts, without an interpolation."""
        return self._by_form_s(self.costs, size_bytes, segment_bytes)

    def drawn_form_s(self, size_bytes: float, segment_bytes: int = 0) -> np.ndarray:
        """Return the seconds that the form predicts with the coefficients of each replicate."""
        calls = self._calls(size_bytes, segment_bytes)
        return np.array([float(collective_time_s(calls, one)[0]) for one in self.replicates])

    def is_interpolated(self, size_bytes: float, segment_bytes: int = 0) -> bool:
        return self._interpolated_s(size_bytes, segment_bytes) is not None

    def _by_form_s(self, costs: CollectiveCosts, size_bytes: float, segment_bytes: int) -> float:
        return float(collective_time_s(self._calls(size_bytes, segment_bytes), costs)[0])

    def _calls(self, size_bytes: float, segment_bytes: int) -> Calls:
        return make_calls([self.hops], np.array([size_bytes]), np.array([segment_bytes]))

    def _interpolated_s(self, size_bytes: float, segment_bytes: int) -> float | None:
        if self.form.tree or segment_bytes not in self.measured:
            return None
        if (measured_s := self.measured_s(size_bytes, segment_bytes)) is not None:
            return measured_s
        sizes, times_s = self.measured[segment_bytes]
        sizes, times_s = sizes[sizes > 0], times_s[sizes > 0]  # 0 has no logarithm
        if not len(sizes) or not sizes[0] <= size_bytes <= sizes[-1]:
            return None
        return float(np.exp(np.interp(np.log(size_bytes), np.log(sizes), np.log(times_s))))


@dataclass(frozen=True)
class AlgorithmPrediction:
    """The predicted time of one algorithm; `extrapolated` lists the quantities outside the measured range."""

    method: str
    algorithm: str
    segment_bytes: int
    time_s: float
    form: str
    tree: str | None = None
    time_interval_s: tuple[float, float] | None = None
    extrapolated: tuple[str, ...] = ()

    def to_json(self, forms: Sequence[CollectiveForm]) -> dict[str, Any]:
        """Return the JSON object of a prediction from `forms`, with the error of the form at rank counts left
        out of the fit, as `fit` prints it; an interpolated time has none."""
        errors = (form.extra.get("held_out_error") for form in forms if form.algorithm == self.algorithm)
        error = None if self.form == "interpolated" else next(errors)
        value = {name: item for name, item in vars(self).items() if item is not None}
        value |= {} if error is None else {"held_out_error": error}
        return {name: list(item) if isinstance(item, tuple) else item for name, item in value.items()}


@dataclass(frozen=True)
class Answer:
    """The predictions in the order of the profile, those of Insaghi (paper), and notes."""

    predictions: tuple[AlgorithmPrediction, ...]
    references: tuple[Reference, ...] = ()
    notes: tuple[str, ...] = ()


def forms_of(profile: Profile, operation: str) -> list[CollectiveForm]:
    """Return the forms of an operation; raise InputError with the available operations if the profile has
    none.
    """
    if operation not in OPERATIONS:
        raise InputError(f"--op is {operation!r}; give one of {', '.join(OPERATIONS)}")
    if operation in UNMODELLED:
        raise InputError(f"--op is {operation!r}, and {unmodelled_hint([operation])}")
    forms = _collectives(profile, operation)
    found = [form for form in forms if form.operation == operation]
    if not found:
        known = ", ".join(dict.fromkeys(form.operation for form in forms))
        raise InputError(
            f"the profile {profile.id or '(no id)'} holds no {operation} but {known}; "
            f"{measure_hint(operation, LaunchOptions.of(profile))}"
        )
    if len(mpis := list(dict.fromkeys(form.mpi for form in found))) > 1:
        raise InputError(
            f"the profiles given hold {operation} of {' and '.join(mpis)}; give one --profile at a time"
        )
    return found


def operations_of(profile: Profile) -> list[str]:
    """Return the operations that have forms in the profile; raise InputError if there are none."""
    known = {form.operation for form in _collectives(profile, OPERATIONS[0])}
    return [operation for operation in OPERATIONS if operation in known]


def _collectives(profile: Profile, operation: str) -> list[CollectiveForm]:
    """Return all forms; raise InputError with how to measure `operation` if there are none."""
    if not profile.collectives:
        raise InputError(
            f"the profile {profile.id or '(no id)'} holds no collectives; "
            f"{measure_hint(operation, LaunchOptions.of(profile))}"
        )
    return profile.collectives


def place_ranks(
    forms: Sequence[CollectiveForm],
    ranks: int | None,
    layout: str | None = None,
    map_by: str | None = None,
    root: int = 0,
) -> tuple[Placed, list[str]]:
    """Return the placement of ranks, and notes: on `layout`, or by default on the machine of the profile,
    with further nodes of the same kind if the ranks need them.

    `forms` are those of one operation, or of several that share the placement. The default of `map_by` is a
    measured mapping. Raises InputError.
    """
    measured = list(dict.fromkeys(one for form in forms for one in form.map_by))
    chosen = map_by or ("core" if not measured or "core" in measured else measured[0])
    notes: list[str] = []
    if ranks is not None and not 2 <= ranks <= MAX_RANKS:
        raise InputError(f"--ranks is {ranks}; give 2 or more, at most {MAX_RANKS}")
    if layout is not None:
        shape = layout.strip()
        found = parse_layout(layout, "core" if layout.endswith(".csv") and map_by is None else chosen)
        ranks = ranks or found.num_ranks
        if not 2 <= ranks <= found.num_ranks:
            raise InputError(
                f"--ranks is {ranks} and the layout {layout} has {found.num_ranks} ranks; give 2 to "
                f"{found.num_ranks}, or another layout"
            )
        # A layout that the ranks fill says where they are; one with more places is another machine.
        named = measured_placement(forms, found, ranks) if ranks == found.num_ranks else None
        if named and named[1:] != (shape, chosen) and root == 0:
            notes.append(f"these ranks of {found.text} were measured as {ranks} of {named[0].text}")
            found, shape, chosen = named
    else:
        if ranks is None:
            raise InputError("the number of ranks is unknown; add --ranks, or --layout such as 2x1x4")
        machine = next((form.machine for form in forms if form.machine), None)
        if machine is None:
            raise InputError(
                "the profile does not say which machine its collectives were measured on; add --layout, "
                "such as 2x1x4"
            )
        nodes, sockets, cores = machine["nodes"], machine["sockets"], machine["cores"]
        needed = -(-ranks // (sockets * cores))
        if needed > nodes:
            notes.append(
                f"{ranks} ranks do not fit on the {nodes} node{'' if nodes == 1 else 's'} measured; {needed} "
                "nodes of this kind are assumed, --layout selects another machine"
            )
        shape = f"{max(nodes, needed)}x{sockets}x{cores}"
        found = parse_layout(shape, chosen)
    if not 0 <= root < ranks:
        raise InputError(f"--root is {root} of {ranks} ranks; give 0 to {ranks - 1}")
    operations = list(dict.fromkeys(form.operation for form in forms))
    if root and not set(operations) & set(ROOTED):
        have = "has" if len(operations) == 1 else "have"
        raise InputError(f"--root is {root} and {' and '.join(operations)} {have} no root; leave --root out")
    return Placed(found, ranks, chosen, root, shape), notes


def measured_placement(
    forms: Iterable[CollectiveForm], layout: Layout, ranks: int
) -> tuple[Layout, str, str] | None:
    """Return the layout, shape and mapping at which forms were measured with the first `ranks` placed as in
    `layout`; None if no form was measured there. Nodes and sockets may have other numbers.
    """
    wanted = _numbered(layout, ranks)
    for form in forms:
        mappings = {map_by for count, _, _, map_by, _ in form.measured if count == ranks}
        for map_by in (one for one in MAPPINGS if one in mappings and form.machine):
            measured = parse_layout(machine_shape(form), map_by)
            if measured.num_ranks >= ranks and _numbered(measured, ranks) == wanted:
                return measured, machine_shape(form), map_by
    return None


def machine_shape(form: CollectiveForm) -> str:
    """Return the machine of a form as a layout."""
    return "x".join(str(form.machine.get(name)) for name in ("nodes", "sockets", "cores"))


def _numbered(layout: Layout, ranks: int) -> list[tuple[int, int]]:
    """Return node and socket of each of the first ranks, numbered in the order of their first ranks."""
    places = list(zip(layout.node[:ranks].tolist(), layout.socket[:ranks].tolist(), strict=True))
    nodes = {node: k for k, node in enumerate(dict.fromkeys(node for node, _ in places))}
    sockets = {place: k for k, place in enumerate(dict.fromkeys(places))}
    return [(nodes[place[0]], sockets[place]) for place in places]


def algorithm_models(
    forms: Iterable[CollectiveForm], placed: Placed, size_bytes: int | None = None
) -> tuple[list[AlgorithmModel], list[str]]:
    """Return models of the algorithms that the MPI accepts on this placement and whose hops there were
    measured, at `size_bytes` or else at some measured size; and the reasons why others are left out.
    """
    count = cache(lambda structure: count_hops(structure, placed.node, placed.socket, placed.root))
    models, notes = [], []
    unmeasured: dict[tuple[str, str], list[str]] = {}
    for form in forms:
        hops = count(form.structure)
        used = {level for level, one in zip(LEVELS, (hops.once > 0).any(axis=0), strict=True) if one}
        if missing := [level for level in LEVELS if level in used - set(form.levels)]:
            label = " and ".join(level_phrase(level) for level in missing)
            only = next((level for level in LEVELS if level in form.levels), LEVELS[0])
            unmeasured.setdefault((label, only), []).append(form.algorithm)
            continue
        sizes_bytes = form.range["size_bytes"] if size_bytes is None else (size_bytes,)
        refused = [lacking_size(form, size) or refusal(form, placed.ranks, size) for size in sizes_bytes]
        if all(refused):
            notes.append(f"{form.algorithm} is left out: it needs {refused[0]}")
            continue
        replicates = tuple(map(_costs, form.replicates))
        models.append(
            AlgorithmModel(form, hops, _costs(form.parameters), replicates, _measured(form, placed))
        )
    for (label, only), names in unmeasured.items():
        other = _ALL_ON[only].format(placed.ranks)
        notes.append(
            f"{', '.join(names)} left out: no hops {label} were measured; measure with ranks placed like "
            "this, or "
            f"give a --layout without such hops, such as {other}"
        )
    if not models:
        raise InputError(f"nothing can be predicted: {'; '.join(notes)}")
    return models, notes


def _measured(form: CollectiveForm, placed: Placed) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return sizes and seconds by segment size, empty unless the placement is a measured one."""
    if placed.shape != machine_shape(form) or placed.root:
        return {}
    found: dict[int, list[tuple[int, float]]] = {}
    for ranks, size_bytes, segment_bytes, map_by, time_s in sorted(form.measured):
        if (ranks, map_by) == (placed.ranks, placed.map_by) and time_s:
            found.setdefault(segment_bytes, []).append((size_bytes, time_s))
    return {segment: tuple(np.array(points).T) for segment, points in found.items()}


def predict_collective(
    forms: Sequence[CollectiveForm], placed: Placed, size_bytes: int, only: str | None = None
) -> Answer:
    """Predict the seconds of every algorithm with every measured segment size, or of the method `only`: an
    algorithm with or without a segment size.
    """
    chosen = forms if only is None else _only(forms, parse_method(only))
    models, notes = algorithm_models(chosen, placed, size_bytes)
    predictions = []
    for model in models:
        segments = model.form.segments_bytes
        if only is not None and ":" in only:
            segments = (parse_method(only).segment_bytes,)
        for segment in segments:
            if needed := refusal(model.form, placed.ranks, size_bytes, segment):
                notes.append(f"{Method(model.form.algorithm, segment).text} is left out: it needs {needed}")
            else:
                predictions.append(_predict(model, placed, size_bytes, segment))
    if not predictions:
        raise InputError(f"nothing can be predicted: {'; '.join(notes)}")
    return Answer(
        tuple(predictions),
        tuple(references(forms[0].operation, placed.ranks, size_bytes, placed.map_by)),
        (*notes, *reservations(models, placed, [size_bytes])),
    )


def reservations(models: Sequence[AlgorithmModel], placed: Placed, sizes_bytes: Sequence[int]) -> list[str]:
    """Return notes on predictions outside the measured range, one sentence each."""
    notes = []
    for label, name, values, form in (
        ("process counts", "ranks", [placed.ranks], str),
        ("sizes", "size_bytes", sizes_bytes, format_bytes),
    ):
        measured = ((model.form.algorithm, model.form.range[name]) for model in models)
        notes += extrapolations(label, values, measured, form, lambda names: _some(names, models))
    unmapped = [model.form.algorithm for model in models if not _is_mapped(model.form, placed.map_by)]
    if unmapped:
        notes.append(
            f"--map-by {placed.map_by} was not measured for {_some(unmapped, models)}; hops are counted from "
            "its placement"
        )
    notes += [model.form.doubt for model in models if model.form.doubt]
    loose = [
        model.form.algorithm
        for model in models
        if model.form.tree is None and placed.ranks > model.form.range["ranks"][1]
    ]
    if loose:
        notes.append(
            f"no tree is known of {_some(loose, models)}: an interpolation, which is unreliable beyond the "
            "measured process counts"
        )
    return notes


def _predict(
    model: AlgorithmModel, placed: Placed, size_bytes: int, segment_bytes: int
) -> AlgorithmPrediction:
    form, time_s = model.form, model.time_s(size_bytes, segment_bytes)
    return AlgorithmPrediction(
        Method(form.algorithm, segment_bytes).text,
        form.algorithm,
        segment_bytes,
        time_s,
        form_name(model, size_bytes, segment_bytes),
        form.tree,
        interval(model.drawn_s(size_bytes, segment_bytes), time_s) if model.replicates else None,
        extrapolated(form, placed, size_bytes, segment_bytes),
    )


def form_name(model: AlgorithmModel, size_bytes: float, segment_bytes: int) -> str:
    """Return the source of a time: a form, or times measured at this size or around it."""
    if model.form.tree:
        return "alpha-beta"
    return "interpolated" if model.is_interpolated(size_bytes, segment_bytes) else "empirical"


def extrapolated(
    form: CollectiveForm, placed: Placed, size_bytes: float, segment_bytes: int
) -> tuple[str, ...]:
    """Return those of ranks, size, mapping and segment that are outside the measured range."""
    (fewest, most), (smallest, largest) = form.range["ranks"], form.range["size_bytes"]
    cut = [one for one in form.segments_bytes if one]
    # A segment as large as the message, or larger, means no segments.
    whole = not segment_bytes or segment_bytes >= size_bytes
    return tuple(
        name
        for name, inside in (
            ("ranks", fewest <= placed.ranks <= most),
            ("size", smallest <= size_bytes <= largest),
            ("mapping", _is_mapped(form, placed.map_by)),
            ("segment", whole or (bool(cut) and min(cut) <= segment_bytes <= max(cut))),
        )
        if not inside
    )


def _is_mapped(form: CollectiveForm, map_by: str) -> bool:
    return not form.map_by or map_by in form.map_by


def _only(forms: Sequence[CollectiveForm], method: Method) -> list[CollectiveForm]:
    found = [form for form in forms if form.algorithm == method.name]
    if not found:
        known = ", ".join(form.algorithm for form in forms)
        raise InputError(
            f"--algorithm is {method.text!r}, but for {forms[0].operation} the profile has {known}; "
            "give one of these, or measure it"
        )
    if method.segment_bytes and found[0].tree in (None, "linear") and not any(found[0].segments_bytes):
        raise InputError(
            f"--algorithm is {method.text!r} and {method.name} of {forms[0].operation} was measured without "
            f"segments; give {method.name}"
        )
    return found


def lacking_size(form: CollectiveForm, size_bytes: float) -> str | None:
    """Return what a form of a single size needs to predict another size, or None: one size does not give the
    cost per byte.
    """
    smallest, largest = form.range["size_bytes"]
    if smallest < largest or size_bytes == smallest:
        return None
    return f"a second size, as it was measured at {format_bytes(smallest)} only; give `measure` more --sizes"


def refusal(form: CollectiveForm, ranks: int, size_bytes: int, segment_bytes: int = 0) -> str | None:
    """Return the unmet requirement of an algorithm, without which the MPI would use another one; or None."""
    family = form.extra.get("family", form.mpi)
    if family not in FAMILY_NAMES:
        return None
    try:
        return unmet_requirement(
            family, form.operation, Method(form.algorithm, segment_bytes), ranks, size_bytes
        )
    except InputError:
        return None  # measured by a version with this algorithm


def _some(names: Sequence[str], models: Sequence[AlgorithmModel]) -> str:
    distinct = list(dict.fromkeys(names))
    return "all" if len(distinct) == len(models) > 1 else ", ".join(distinct)


def _costs(parameters: CollectiveParameters) -> CollectiveCosts:
    return CollectiveCosts(**parameters.columns())
