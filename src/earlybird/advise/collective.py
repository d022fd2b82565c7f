"""Advise which algorithm of a collective operation to use, and at which sizes the best one changes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from earlybird.data.advice import Advice, Alternative, Stretch
from earlybird.data.collective_algorithms import DEFAULT, FAMILY_NAMES, OWN, Method, family_of, mpi_algorithms
from earlybird.data.collective_configuration import Configuration, Region, configuration, setting
from earlybird.data.collective_form import CollectiveForm
from earlybird.data.errors import InputError
from earlybird.data.profile import Profile
from earlybird.data.units import format_bytes, format_seconds
from earlybird.predict.collective import (
    INTERVAL_PERCENT,
    AlgorithmModel,
    Placed,
    algorithm_models,
    extrapolated,
    form_name,
    forms_of,
    lacking_size,
    place,
    refusal,
    reservations,
)

# Candidate sizes per octave; bisection then locates a change to this relative accuracy.
_PER_OCTAVE, _KNOWN_TO = 2, 0.01
# An algorithm that takes more work to set must reduce the predicted time by this share.
WORTH = 0.05
# At crossovers a method stays until another one takes less time by this share: similar methods must not
# alternate.
KEPT = 0.1


@dataclass(frozen=True, eq=False)
class _Candidate:
    """An algorithm with one segment size."""

    model: AlgorithmModel
    segment_bytes: int

    @property
    def form(self) -> CollectiveForm:
        return self.model.form

    @property
    def method(self) -> str:
        return Method(self.form.algorithm, self.segment_bytes).text

    @property
    def work(self) -> tuple:
        """The effort to set it: from the default of the MPI (least) to an algorithm of the library (most)."""
        return (
            self.form.algorithm != DEFAULT,
            self.form.algorithm.startswith(OWN),
            self.segment_bytes > 0,
            self.segment_bytes,
        )

    def time_s(self, size_bytes: float) -> float:
        """Infinite if the MPI would silently use another algorithm."""
        return np.inf if self.refused(size_bytes) else self.model.time_s(size_bytes, self.segment_bytes)

    def refused(self, size_bytes: float) -> str | None:
        """The unmet requirement of the algorithm, or None."""
        # Reductions use whole doubles, also at sizes between the measured ones.
        whole_bytes = int(size_bytes) // 8 * 8 or int(size_bytes)
        return lacking_size(self.form, size_bytes) or refusal(
            self.form, self.model.hops.ranks, whole_bytes, self.segment_bytes
        )


@dataclass(frozen=True)
class _Question:
    candidates: Sequence[_Candidate]

    def times_s(self, size_bytes: float) -> np.ndarray:
        return np.array([one.time_s(size_bytes) for one in self.candidates])

    def best(self, size_bytes: float) -> _Candidate:
        """The candidate with the least work among those that take at most WORTH more than the fastest; among
        equals the fastest."""
        return self.candidates[self.ranking(size_bytes)[0]]

    def ranking(self, size_bytes: float) -> list[int]:
        """The best candidate first, the others by time."""
        times_s = self.times_s(size_bytes)
        near = np.flatnonzero(times_s <= times_s.min() / (1 - WORTH))
        first = min(near, key=lambda k: (self.candidates[k].work[:3], times_s[k], self.candidates[k].work))
        return [int(first), *(int(k) for k in np.argsort(times_s, kind="stable") if k != first)]

    def keeps(self, candidate: _Candidate, size_bytes: float) -> bool:
        """Whether no other candidate takes less by more than KEPT."""
        return bool((1 - KEPT) * candidate.time_s(size_bytes) <= self.times_s(size_bytes).min())

    @cached_property
    def sizes_bytes(self) -> tuple[int, int]:
        """The smallest and largest measured size of all candidates."""
        ranges = [one.form.range["size_bytes"] for one in self.candidates]
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    def over_sizes(self) -> "_Question":
        """The question for candidates measured at several sizes, if there are any: one size is no region."""
        several = [one for one in self.candidates if len(set(one.form.range["size_bytes"])) > 1]
        return _Question(several or self.candidates)

    def regions(self) -> list[tuple[int, int, _Candidate]]:
        """Regions from small to large sizes: first size, last size and candidate of each."""
        smallest, largest = self.sizes_bytes
        if smallest == largest:  # a barrier has only size 0
            return [(smallest, largest, self.best(smallest))]
        begin = max(smallest, 1)
        octaves = max(float(np.log2(max(largest, begin) / begin)), 0.0)
        sizes = begin * 2.0 ** (np.arange(int(np.ceil(octaves * _PER_OCTAVE)) + 1) / _PER_OCTAVE)
        found = self.best(sizes[0])
        begins = [(smallest, found)]
        for low, high in pairwise(np.minimum(sizes, largest)):
            if not self.keeps(found, high):
                begins.append((self._first_left(found, low, high), self.best(high)))
                found = begins[-1][1]
        ends = [*(start for start, _ in begins[1:]), largest]
        return [(start, end, one) for (start, one), end in zip(begins, ends, strict=True)]

    def _first_left(self, candidate: _Candidate, low: float, high: float) -> int:
        """The size from which `candidate` is no longer kept; it is at `low` and is not at `high`."""
        while high > low * (1 + _KNOWN_TO):
            middle = (low * high) ** 0.5
            low, high = (middle, high) if self.keeps(candidate, middle) else (low, middle)
        return int(np.ceil(high))


def advise_collective(
    profile: Profile,
    operation: str,
    ranks: int | None,
    size_bytes: int | None = None,
    *,
    layout: str | None = None,
    map_by: str | None = None,
    root: int = 0,
    mpi_only: bool = False,
) -> tuple[Advice, Configuration | None]:
    """Rank every algorithm of `operation` with its best segment size, and find crossovers.

    Parameters
    ----------
    size_bytes : None for the largest measured size.
    ranks, layout, map_by, root : see `predict.collective.place`.
    mpi_only : leave out the algorithms of earlybird, which an MPI cannot be set to use.

    Returns
    -------
    Advice with the fastest alternative first, or one that is less work and takes at most WORTH more; gains
    are over the default of the MPI, if that was measured. And the configuration that makes the MPI use the
    best of its own algorithms in every region; None if it is not known for this MPI.
    """
    forms = forms_of(profile, operation)
    if mpi_only:
        forms = _of_mpi(forms)
    placed, notes = place(forms, ranks, layout, map_by, root)
    asked_bytes = max(form.range["size_bytes"][1] for form in forms) if size_bytes is None else size_bytes
    models, left_out = algorithm_models(forms, placed)
    question = _Question([_Candidate(model, one) for model in models for one in _segments(model.form)])
    family = forms[0].mpi if forms[0].mpi in FAMILY_NAMES else family_of(profile.context)
    ranked, of_algorithm = [], set()
    for k in question.ranking(asked_bytes):
        candidate = question.candidates[k]
        if candidate.form.algorithm in of_algorithm:
            continue
        of_algorithm.add(candidate.form.algorithm)
        if needed := candidate.refused(asked_bytes):
            size = format_bytes(asked_bytes)
            left_out.append(f"{candidate.form.algorithm} is not ranked at {size}: it needs {needed}")
        else:
            ranked.append(_alternative(candidate, placed, asked_bytes, models, family))
    if not ranked:
        raise InputError(f"nothing can be advised: {'; '.join(left_out)}")
    names = {alternative.extra["algorithm"] for alternative in ranked}
    in_ranking = [model for model in models if model.form.algorithm in names]
    regions = question.over_sizes().regions()
    settings = _configure(question, placed, operation, family, size_bytes)
    asked = {"operation": operation, "ranks": placed.ranks, "size_bytes": asked_bytes,
             "map_by": placed.map_by, "layout": placed.layout.text, "root": root}  # fmt: skip
    return (
        Advice(
            "collective",
            asked,
            DEFAULT if DEFAULT in names else "",
            tuple(ranked),
            tuple(_stretch(*region, placed, family) for region in regions),
            profile.id,
            (
                *notes,
                *left_out,
                *reservations(in_ranking, placed, [asked_bytes]),
                *(_contradicted(ranked[0], in_ranking, asked_bytes) or _doubts(ranked, forms)),
            ),
            {} if settings is None else {"config": _config_json(settings)},
        ),
        settings,
    )


def _contradicted(first: Alternative, models: Sequence[AlgorithmModel], size_bytes: int) -> list[str]:
    """A note if another method than the first, including other segment sizes, was measured to be clearly
    faster."""
    timed_s = {
        Method(model.form.algorithm, segment).text: time_s
        for model in models
        for segment in model.measured
        if (time_s := model.measured_s(size_bytes, segment)) is not None
    }
    if first.method not in timed_s:
        return []
    best = min(timed_s, key=timed_s.__getitem__)
    if timed_s[best] >= (1 - KEPT) * timed_s[first.method]:
        return []
    times = [format_seconds(timed_s[method]) for method in (first.method, best)]
    return [
        f"in the measurement of this point, {first.method} took {times[0]} and {best} {times[1]}: trust "
        "the measurement, or repeat it"
    ]


def _doubts(ranked: Sequence[Alternative], forms: Sequence[CollectiveForm]) -> list[str]:
    """A note if the errors of the forms of the best algorithm and of the MPI's default exceed the difference
    between them; interpolated times have no error of a form."""
    best = ranked[0]
    errors = {form.algorithm: form.extra.get("error") for form in forms}
    errors |= {one.extra["algorithm"]: 0.0 for one in ranked if one.extra["form"] == "interpolated"}
    compared = (best.extra["algorithm"], DEFAULT)
    if best.gain is None or best.gain <= 1 or None in (known := [errors.get(name) for name in compared]):
        return []
    saved = 1 - 1 / best.gain
    if max(known) <= saved:
        return []
    listed = " and ".join(f"{name} {100 * error:.0f} %" for name, error in zip(compared, known, strict=True))
    return [
        f"{best.method} is predicted to take {100 * saved:.0f} % less than {DEFAULT}, but the errors "
        f"of the forms are larger (medians over measured points: {listed}); measure both before you rely "
        "on it"
    ]


def _of_mpi(forms: Sequence[CollectiveForm]) -> list[CollectiveForm]:
    found = [form for form in forms if not form.algorithm.startswith(OWN)]
    if not found:
        raise InputError(
            f"the profile has no algorithm of the MPI for {forms[0].operation}; omit --mpi-only, or "
            "measure some with --algorithm linear,pipeline,binomial,default"
        )
    return found


def _segments(form: CollectiveForm) -> list[int]:
    """The measured segment sizes, and the powers of two between them: the form covers all."""
    cut = [one for one in form.segments_bytes if one]
    between = {1 << k for k in range(40) if cut and min(cut) <= 1 << k <= max(cut)}
    return sorted({*form.segments_bytes, *between})


def _alternative(
    candidate: _Candidate,
    placed: Placed,
    size_bytes: int,
    models: Sequence[AlgorithmModel],
    family: str | None,
) -> Alternative:
    default = next((model for model in models if model.form.algorithm == DEFAULT), None)
    time_s = candidate.time_s(size_bytes)
    drawn_s = candidate.model.drawn_s(size_bytes, candidate.segment_bytes)
    gain = gain_interval = None
    if default is not None and not lacking_size(default.form, size_bytes):
        default_s, default_drawn_s = default.time_s(size_bytes), default.drawn_s(size_bytes)
        gain = default_s / time_s if time_s > 0 else None
        if gain is not None and len(drawn_s) and len(drawn_s) == len(default_drawn_s) and drawn_s.all():
            gain_interval = _interval(default_drawn_s / drawn_s, gain)
    beyond = extrapolated(candidate.form, placed, size_bytes, candidate.segment_bytes)
    extra: dict[str, Any] = {
        "algorithm": candidate.form.algorithm,
        "segment_bytes": candidate.segment_bytes,
        "form": form_name(candidate.model, size_bytes, candidate.segment_bytes),
    }
    measured_s = candidate.model.measured_s(size_bytes, candidate.segment_bytes)
    if measured_s is not None:
        extra["measured_s"] = measured_s
    return Alternative(
        candidate.method,
        time_s,
        gain,
        _how_to(candidate, placed, family),
        _interval(drawn_s, time_s) if len(drawn_s) else None,
        gain_interval,
        extra | ({"extrapolated": list(beyond)} if beyond else {}),
    )


def _interval(values: np.ndarray, found: float) -> tuple[float, float]:
    """The interval of the replicates, extended to include the fitted value `found`: resampled medians of few
    launches may all lie on one side of it."""
    low, high = np.percentile(values, INTERVAL_PERCENT)
    return min(float(low), found), max(float(high), found)


def _how_to(candidate: _Candidate, placed: Placed, family: str | None) -> str:
    if not _has_setting(candidate.form, family) and not candidate.form.algorithm.startswith(OWN):
        return f"use {candidate.method}; see the manual of this MPI"
    return setting(family or "", candidate.form.operation, candidate.method, placed.ranks)


def _has_setting(form: CollectiveForm, family: str | None) -> bool:
    """Whether the setting that makes the MPI use it is known."""
    return form.algorithm in (DEFAULT, *mpi_algorithms(family, form.operation))


def _stretch(start: int, end: int, candidate: _Candidate, placed: Placed, family: str | None) -> Stretch:
    extra: dict[str, Any] = {
        "algorithm": candidate.form.algorithm,
        "segment_bytes": candidate.segment_bytes,
    }
    beyond = {
        one
        for size in (start, end)
        for one in extrapolated(candidate.form, placed, size, candidate.segment_bytes)
    }
    if beyond:
        extra["extrapolated"] = sorted(beyond)
    return Stretch(start, end, candidate.method, _how_to(candidate, placed, family), extra)


def _configure(
    question: _Question, placed: Placed, operation: str, family: str | None, size_bytes: int | None
) -> Configuration | None:
    """The configuration for the best of the MPI's own algorithms; at `size_bytes` if the MPI accepts only one
    for all sizes."""
    of_mpi = [one for one in question.candidates if _has_setting(one.form, family)]
    if family is None or not of_mpi:
        return None
    regions, lost = _regions(of_mpi, placed), []
    has_settings = any(region.method != DEFAULT for region in regions)
    if has_settings and family == "openmpi" and _has_nodes_of_several_ranks(placed):
        # Rules only apply if the component `tuned` has priority; its own choice differs from that of `han`,
        # the default of the MPI on such nodes.
        lost = [region for region in regions if region.method == DEFAULT]
        regions = _regions([one for one in of_mpi if one.form.algorithm != DEFAULT], placed)
    settings = configuration(family, operation, regions, size_bytes)
    return replace(settings, left_out=(*settings.left_out, *lost))


def _regions(candidates: Sequence[_Candidate], placed: Placed) -> list[Region]:
    found = _Question(candidates).over_sizes().regions()
    last = len(found) - 1
    return [
        Region(one.method, placed.ranks, start if k else 0, None if k == last else end)
        for k, (start, end, one) in enumerate(found)
    ]


def _has_nodes_of_several_ranks(placed: Placed) -> bool:
    _, ranks = np.unique(placed.node, return_counts=True)
    return len(ranks) > 1 and bool(ranks.max() > 1)


def _config_json(settings: Configuration) -> dict[str, Any]:
    return {
        "kind": settings.kind,
        "text": settings.text,
        "use": settings.use,
        "left_out": [region.describe() for region in settings.left_out],
    }
