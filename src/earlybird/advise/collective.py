"""Advise which algorithm of a collective operation to use, and at which sizes the best one changes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from earlybird.advise import options
from earlybird.advise.crossovers import best_by_size
from earlybird.advise.options import Option
from earlybird.data.advice import EXTRAPOLATED, MEASURED, MODEL, Advice, Alternative, SizeRange
from earlybird.data.collective_algorithms import DEFAULT, FAMILY_NAMES, OWN, Method, family_of, mpi_algorithms
from earlybird.data.collective_configuration import (
    Configuration,
    Region,
    configuration,
    mpich_selects,
    selection_configuration,
    setting,
)
from earlybird.data.collective_form import CollectiveForm
from earlybird.data.errors import InputError
from earlybird.data.mpich_selection import Selection
from earlybird.data.profile import Profile
from earlybird.data.results import Result
from earlybird.data.units import format_bytes, size_argument
from earlybird.predict.collective import (
    AlgorithmModel,
    Placed,
    algorithm_models,
    extrapolated,
    form_name,
    forms_of,
    lacking_size,
    place_ranks,
    refusal,
    reservations,
)
from earlybird.predict.measured_collectives import MeasuredCollectives
from earlybird.predict.outlook import Outlook
from earlybird.predict.profiles import measured_results

# Why Open MPI's rules cannot leave a size to the default on several nodes of several ranks.
_OTHER_DEFAULT = (
    "rules give Open MPI's component tuned priority over the one that chooses on these nodes, which is best "
    "at other sizes"
)


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
        """The effort to set it: from the default of the MPI (least) to another call in the program (most)."""
        return (
            self.form.algorithm != DEFAULT,
            self.form.algorithm.startswith(OWN) or Method(self.form.algorithm).is_persistent,
            self.segment_bytes > 0,
        )

    def refused(self, size_bytes: float) -> str | None:
        """The unmet requirement of the algorithm, without which the MPI would silently use another one."""
        # Reductions use whole doubles, also at sizes between the measured ones.
        whole_bytes = int(size_bytes) // 8 * 8 or int(size_bytes)
        return lacking_size(self.form, size_bytes) or refusal(
            self.form, self.model.hops.ranks, whole_bytes, self.segment_bytes
        )


@dataclass(frozen=True)
class _Judged:
    """A candidate and what is known of it at one size."""

    candidate: _Candidate
    outlook: Outlook
    option: Option
    outside: tuple[str, ...]  # quantities outside the measured range


@dataclass(frozen=True)
class _Question:
    """The algorithms to choose from, on one placement."""

    candidates: Sequence[_Candidate]
    results: Sequence[Result]
    placed: Placed
    _reliable: dict[int, bool] = field(default_factory=dict, init=False)
    _judged: dict[float, list[_Judged]] = field(default_factory=dict, init=False)

    @cached_property
    def default(self) -> AlgorithmModel | None:
        return next((one.model for one in self.candidates if one.form.algorithm == DEFAULT), None)

    @cached_property
    def measured(self) -> MeasuredCollectives:
        models = {id(one.model): one.model for one in self.candidates}.values()
        return MeasuredCollectives(models, self.default, self.results, self.placed)

    def judged(self, size_bytes: float) -> list[_Judged]:
        """Every candidate that the MPI accepts at this size."""
        if size_bytes not in self._judged:
            has_default = self.default is not None and not lacking_size(self.default.form, size_bytes)
            self._judged[size_bytes] = [
                self._judge(one, size_bytes, has_default)
                for one in self.candidates
                if not one.refused(size_bytes)
            ]
        return self._judged[size_bytes]

    def _judge(self, candidate: _Candidate, size_bytes: float, has_default: bool) -> _Judged:
        model, segment = candidate.model, candidate.segment_bytes
        outlook = self.measured.outlook(model, size_bytes, segment)
        outside = beyond(candidate.form, self.placed, size_bytes, segment)
        basis = MEASURED if outlook.result is not None else EXTRAPOLATED if outside else MODEL
        option = Option(
            candidate.method,
            candidate.work,
            outlook.time_s,
            outlook.speed_up if has_default else None,
            basis,
            has_default and model is self.default,
            None,
            outlook.measured_speed_up,
            self._is_reliable(model),
        )
        return _Judged(candidate, outlook, option, outside)

    def _is_reliable(self, model: AlgorithmModel) -> bool:
        if id(model) not in self._reliable:
            pair = [model, self.default] if self.default else [model]
            self._reliable[id(model)] = all(options.decides(self.measured.results_of(one)) for one in pair)
        return self._reliable[id(model)]

    def best(self, size_bytes: float) -> _Judged:
        judged = self.judged(size_bytes)
        return judged[options.choose([one.option for one in judged])]

    def ranking(self, size_bytes: float) -> list[_Judged]:
        """The advised candidate first, then the best of every other algorithm, see `options.order`."""
        judged = [self._with_prediction(one, size_bytes) for one in self.judged(size_bytes)]
        ranked = [judged[k] for k in options.order([one.option for one in judged])] if judged else []
        first: dict[str, _Judged] = {}
        for one in ranked:
            first.setdefault(one.candidate.form.algorithm, one)
        return list(first.values())

    def _with_prediction(self, judged: _Judged, size_bytes: float) -> _Judged:
        """With what the form alone predicts."""
        if judged.option.speed_up is None:
            return judged
        candidate = judged.candidate
        predicted = self.measured.predicted_speed_up(candidate.model, size_bytes, candidate.segment_bytes)
        return replace(judged, option=replace(judged.option, predicted_speed_up=predicted))

    def keeps(self, candidate: _Candidate, size_bytes: float) -> bool:
        """Whether `candidate` stays advised at this size."""
        judged = self.judged(size_bytes)
        current = next((one.option for one in judged if one.candidate is candidate), None)
        return current is not None and options.stays(current, [one.option for one in judged])

    @cached_property
    def sizes_bytes(self) -> tuple[int, int]:
        """The smallest and largest measured size: of the default if it was measured at several."""
        ranges = [one.form.range["size_bytes"] for one in self.candidates]
        of_default = self.default and self.default.form.range["size_bytes"]
        if of_default and of_default[0] < of_default[1]:
            ranges = [of_default]
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    def over_sizes(self) -> "_Question":
        """The question for candidates measured at several sizes, if there are any: one size is no region."""
        several = [one for one in self.candidates if len(set(one.form.range["size_bytes"])) > 1]
        return replace(self, candidates=several or self.candidates)

    def regions(self) -> list[tuple[int, int, _Candidate]]:
        """Regions from small to large sizes: first size, last size and candidate of each."""
        smallest, largest = self.sizes_bytes
        if smallest == largest:  # a barrier has only size 0
            return [(smallest, largest, self.best(smallest).candidate)]
        return best_by_size(smallest, largest, lambda size: self.best(size).candidate, self.keeps)

    def measured_regions(self) -> list[tuple[int, int, _Candidate]]:
        """Regions that deviate from the default only where that was measured to be clearly faster: at
        measured sizes, and between two of them where this holds at both. All else between is the default's.

        None without a measured default on this placement. The last size of a region belongs to it.
        """
        sizes = [] if self.default is None else self.measured.sizes_bytes(self.default)
        if not sizes:
            return []
        default = next(one for one in self.candidates if one.model is self.default)
        best = self._best_measured(default, sizes)
        pieces = [(sizes[0], best[0])]  # last size and candidate of each
        for (low, before), (high, after) in pairwise(zip(sizes, best, strict=True)):
            holding = [one for one in (before, after) if self._proven(one, low) and self._proven(one, high)]
            pieces += [(high - 1, holding[0] if holding else default)] if high - 1 > low else []
            pieces.append((high, after))
        regions, first = [], sizes[0]
        for candidate, same in groupby(pieces, key=lambda piece: piece[1]):
            *_, (last, _) = same
            regions.append((first, last, candidate))
            first = last + 1
        return regions

    def _best_measured(self, default: _Candidate, sizes: Sequence[int]) -> list[_Candidate]:
        """The best at each size of those that are proven; one stays until another is clearly faster."""
        found, current = [], default
        for size in sizes:
            proven = [one for one in self.judged(size) if self._proven(one.candidate, size)]
            known = [one.option for one in proven]
            kept = next((one.option for one in proven if one.candidate is current), None)
            if kept is None or not options.stays(kept, known):
                current = proven[options.choose(known)].candidate
            found.append(current)
        return found

    def _proven(self, candidate: _Candidate, size_bytes: int) -> bool:
        """Whether it is the default, or was measured at this size to be clearly faster."""
        option = next((one.option for one in self.judged(size_bytes) if one.candidate is candidate), None)
        if option is None or option.is_reference:
            return option is not None
        return option.basis == MEASURED and option.is_clearly_faster


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
    at_size_only: bool = False,
    selection: Selection | None = None,
) -> tuple[Advice, Configuration | None]:
    """Rank every algorithm of `operation` with its best segment size, and find crossovers.

    Parameters
    ----------
    size_bytes : None for the largest measured size.
    ranks, layout, map_by, root : see `predict.collective.place_ranks`.
    mpi_only : leave out the algorithms of earlybird, which an MPI cannot be set to use.
    at_size_only : leave out crossovers and configuration, which take most of the time.
    selection : the trees of this MPICH's library, so that its configuration can select by size.

    Returns
    -------
    Advice whose first alternative is the advised one, see `options.choose`; speed-ups are over the default of
    the MPI, if that was measured. Where the point was measured, its values are the measured ones; elsewhere
    those of the form, corrected by the measured points of the same placement. And the configuration that
    makes the MPI use the best of its own algorithms in every region; None if it is not known for this MPI.
    """
    forms = forms_of(profile, operation)
    if mpi_only:
        forms = _of_mpi(forms)
    placed, notes = place_ranks(forms, ranks, layout, map_by, root)
    asked_bytes = max(form.range["size_bytes"][1] for form in forms) if size_bytes is None else size_bytes
    models, left_out = algorithm_models(forms, placed)
    candidates = [_Candidate(model, one) for model in models for one in _segments(model.form)]
    of_operation = [one for one in measured_results(profile) if one.config.get("operation") == operation]
    question = _Question(candidates, of_operation, placed)
    family = forms[0].mpi if forms[0].mpi in FAMILY_NAMES else family_of(profile.context)
    ranked = question.ranking(asked_bytes)
    names = {one.candidate.form.algorithm for one in ranked}
    left_out += [
        f"{candidate.form.algorithm} is not ranked at {format_bytes(asked_bytes)}: it needs {needed}"
        for candidate in {one.form.algorithm: one for one in reversed(candidates)}.values()
        if candidate.form.algorithm not in names and (needed := candidate.refused(asked_bytes))
    ]
    if not ranked:
        raise InputError(f"nothing can be advised: {'; '.join(left_out)}")
    regions = [] if at_size_only else question.over_sizes().regions()
    settings = None if at_size_only else _configure(question, operation, family, size_bytes, selection)
    asked = {"operation": operation, "ranks": placed.ranks, "size_bytes": asked_bytes,
             "map_by": placed.map_by, "layout": placed.layout.text, "root": root}  # fmt: skip
    again = (
        f"`earlybird measure collective --op {operation} --ranks {placed.ranks} --map-by {placed.map_by} "
        f"--sizes {size_argument(asked_bytes)} --launches 7 -o RUN` on an idle machine"
    )
    return (
        Advice(
            "collective",
            asked,
            DEFAULT if ranked[0].option.speed_up else "",
            tuple(_alternative(one, placed, asked_bytes, family) for one in ranked),
            tuple(_size_range(*region, placed, family) for region in regions),
            profile.id,
            (
                *options.notes([one.option for one in ranked], ranked[0].option, again),
                *notes,
                *left_out,
                *reservations(
                    [model for model in models if model.form.algorithm in names], placed, [asked_bytes]
                ),
            ),
            {} if settings is None else {"config": _config_json(settings)},
        ),
        settings,
    )


def beyond(form: CollectiveForm, placed: Placed, size_bytes: float, segment_bytes: int) -> tuple[str, ...]:
    """What is outside the measured range; a layout other than that of the measured machine is, too."""
    machine = "x".join(str(form.machine.get(name)) for name in ("nodes", "sockets", "cores"))
    outside = extrapolated(form, placed, size_bytes, segment_bytes)
    return outside if placed.shape == machine or "ranks" in outside else (*outside, "layout")


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


def _alternative(judged: _Judged, placed: Placed, size_bytes: int, family: str | None) -> Alternative:
    candidate, option, result = judged.candidate, judged.option, judged.outlook.result
    extra: dict[str, Any] = {
        "algorithm": candidate.form.algorithm,
        "segment_bytes": candidate.segment_bytes,
        "form": form_name(candidate.model, size_bytes, candidate.segment_bytes),
    }
    return Alternative(
        candidate.method,
        option.time_s,
        option.speed_up,
        _how_to(candidate, placed, family),
        option.basis,
        option.predicted_speed_up,
        result and result.time_s,
        judged.outlook.measured_speed_up if option.speed_up else None,
        result.state if result else "",
        extra | ({"extrapolated": list(judged.outside)} if judged.outside else {}),
    )


def _how_to(candidate: _Candidate, placed: Placed, family: str | None) -> str:
    method = Method(candidate.form.algorithm)
    if not _has_setting(candidate.form, family) and not method.is_own and not method.is_persistent:
        return f"use {candidate.method}; see the manual of this MPI"
    return setting(family or "", candidate.form.operation, candidate.method, placed.ranks)


def _has_setting(form: CollectiveForm, family: str | None) -> bool:
    """Whether the setting that makes the MPI use it is known."""
    return form.algorithm in (DEFAULT, *mpi_algorithms(family, form.operation))


def _size_range(start: int, end: int, candidate: _Candidate, placed: Placed, family: str | None) -> SizeRange:
    extra: dict[str, Any] = {
        "algorithm": candidate.form.algorithm,
        "segment_bytes": candidate.segment_bytes,
    }
    outside = {
        one for size in (start, end) for one in beyond(candidate.form, placed, size, candidate.segment_bytes)
    }
    if outside:
        extra["extrapolated"] = sorted(outside)
    return SizeRange(start, end, candidate.method, _how_to(candidate, placed, family), extra)


def _configure(
    question: _Question,
    operation: str,
    family: str | None,
    size_bytes: int | None,
    selection: Selection | None,
) -> Configuration | None:
    """The configuration for the best of the MPI's own algorithms; at `size_bytes` if the MPI accepts only one
    for all sizes."""
    of_mpi = [one for one in question.candidates if _has_setting(one.form, family)]
    if family is None or not of_mpi:
        return None
    ranks, num_nodes = question.placed.ranks, len(np.unique(question.placed.node))
    if family == "mpich" and selection is not None:
        able = [one for one in of_mpi if mpich_selects(operation, one.method, ranks)]
        regions = _regions(replace(question, candidates=able)) if able else [Region(DEFAULT, ranks)]
        return selection_configuration(selection, operation, regions, num_nodes)
    regions = _regions(replace(question, candidates=of_mpi))
    others = tuple(region for region in regions if region.method != DEFAULT)
    if family == "openmpi" and _has_nodes_of_several_ranks(question.placed) and len(others) < len(regions):
        # Rules only apply if the component `tuned` has priority; its own choice differs from that of `han`,
        # the default of the MPI on such nodes.
        nothing = configuration(family, operation, [Region(DEFAULT, ranks)])
        return replace(nothing, left_out=others, reason=_OTHER_DEFAULT)
    return configuration(family, operation, regions, size_bytes)


def _regions(question: _Question) -> list[Region]:
    """What was measured to be faster than the default; without any times of the default, what the models
    predict to be fastest."""
    ranks = question.placed.ranks
    if question.default is not None:
        found = question.measured_regions()
        return [Region(one.method, ranks, start, end) for start, end, one in found] or [
            Region(DEFAULT, ranks)
        ]
    found = question.over_sizes().regions()
    last = len(found) - 1
    return [
        Region(one.method, ranks, start if k else 0, None if k == last else end - 1)
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
        "regions": [
            {"method": one.method, "from_bytes": one.from_bytes, "to_bytes": one.to_bytes}
            for one in settings.regions
        ],
    }
