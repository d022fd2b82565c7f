"""Advise which algorithm of a collective operation to use, and at which sizes the best one changes; with one
configuration of the MPI for several operations."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, groupby, pairwise
from typing import Any

import numpy as np

from earlybird.advise import options
from earlybird.advise.crossovers import best_by_size
from earlybird.advise.options import Option
from earlybird.data import labels
from earlybird.data.advice import (
    CONFIG,
    EXTRAPOLATED,
    MEASURED,
    MODEL,
    Advice,
    Alternative,
    CollectivesAdvice,
    SizeRange,
)
from earlybird.data.collective_algorithms import (
    DEFAULT,
    FAMILY_NAMES,
    OWN,
    ROOTED,
    Method,
    family_of,
    mpi_algorithms,
)
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
_OTHER_DEFAULT = "rules give Open MPI's component tuned priority over the one that chooses on these nodes"


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
    """The algorithms of an operation to choose from, on one placement."""

    candidates: Sequence[_Candidate]
    results: Sequence[Result]
    placed: Placed
    family: str | None  # of the MPI
    left_out: Sequence[str] = ()  # why further algorithms are no candidates
    _reliable: dict[int, bool] = field(default_factory=dict, init=False)
    _judged: dict[float, list[_Judged]] = field(default_factory=dict, init=False)

    @property
    def operation(self) -> str:
        return self.candidates[0].form.operation

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
    profile: Profile, operation: str, ranks: int | None, size_bytes: int | None = None, **more: Any
) -> tuple[Advice, Configuration | None]:
    """Advice on one operation, with its configuration; parameters are those of `advise_collectives`."""
    several, settings = advise_collectives(profile, [operation], ranks, size_bytes, **more)
    return several.pieces()[0], settings


def advise_collectives(
    profile: Profile,
    operations: Sequence[str],
    ranks: int | None,
    size_bytes: int | None = None,
    *,
    layout: str | None = None,
    map_by: str | None = None,
    root: int = 0,
    mpi_only: bool = False,
    at_size_only: bool = False,
    selection: Selection | None = None,
) -> tuple[CollectivesAdvice, Configuration | None]:
    """Rank every algorithm of each operation with its best segment size, and find crossovers.

    Parameters
    ----------
    size_bytes : None for the largest measured size; a barrier ignores it.
    ranks, layout, map_by, root : see `predict.collective.place_ranks`; operations without a root ignore
        `root`, if another one has it.
    mpi_only : leave out the algorithms of earlybird, which an MPI cannot be set to use.
    at_size_only : leave out crossovers and configuration, which take most of the time.
    selection : the trees of this MPICH's library, so that its configuration can select by size.

    Returns
    -------
    Advice whose first alternative is the advised one, see `options.choose`; speed-ups are over the default of
    the MPI, if that was measured. Where the point was measured, its values are the measured ones; elsewhere
    those of the form, corrected by the measured points of the same placement. And one configuration for all
    operations that makes the MPI use the best of its own algorithms in every region; None if it is not known
    for this MPI.
    """
    of_operations = [_forms(profile, operation, mpi_only) for operation in operations]
    _require_one_mpi(of_operations)
    placed, notes = place_ranks([*chain.from_iterable(of_operations)], ranks, layout, map_by, root)
    questions, pieces = [], []
    for operation, forms in zip(operations, of_operations, strict=True):
        own_placed = placed if operation in ROOTED else replace(placed, root=0)
        asked_bytes = _asked_bytes(forms, None if operation == "barrier" else size_bytes)
        try:
            question = _question(profile, forms, own_placed)
            pieces.append(_advise(question, asked_bytes, notes, profile.id, at_size_only))
        except InputError as error:
            if len(operations) == 1:
                raise
            raise InputError(f"{operation}: {error}; or leave {operation} out of --op") from error
        questions.append(question)
    settings = None if at_size_only else _configure(questions, size_bytes, selection)
    return CollectivesAdvice(tuple(pieces), _extra(settings)), settings


def _forms(profile: Profile, operation: str, mpi_only: bool) -> list[CollectiveForm]:
    forms = forms_of(profile, operation)
    return _of_mpi(forms) if mpi_only else forms


def _require_one_mpi(of_operations: Iterable[Sequence[CollectiveForm]]) -> None:
    """InputError if the operations, each of one MPI, are of several."""
    mpis = {forms[0].mpi: forms[0].operation for forms in of_operations}
    if len(mpis) > 1:
        held = " and ".join(f"{operation} of {mpi}" for mpi, operation in mpis.items())
        raise InputError(f"the profiles given hold {held}; give profiles of one MPI")


def _asked_bytes(forms: Sequence[CollectiveForm], size_bytes: int | None) -> int:
    return max(form.range["size_bytes"][1] for form in forms) if size_bytes is None else size_bytes


def _question(profile: Profile, forms: Sequence[CollectiveForm], placed: Placed) -> _Question:
    models, left_out = algorithm_models(forms, placed)
    candidates = [_Candidate(model, one) for model in models for one in _segments(model.form)]
    operation, mpi = forms[0].operation, forms[0].mpi
    results = [one for one in measured_results(profile) if one.config.get("operation") == operation]
    family = mpi if mpi in FAMILY_NAMES else family_of(profile.context)
    return _Question(candidates, results, placed, family, left_out)


def _advise(
    question: _Question,
    asked_bytes: int,
    notes: Sequence[str],
    profile_id: str,
    at_size_only: bool,
) -> Advice:
    placed, candidates = question.placed, question.candidates
    ranked = question.ranking(asked_bytes)
    names = {one.candidate.form.algorithm for one in ranked}
    left_out = [
        *question.left_out,
        *(
            f"{one.form.algorithm} is not ranked at {format_bytes(asked_bytes)}: it needs {needed}"
            for one in {one.form.algorithm: one for one in reversed(candidates)}.values()
            if one.form.algorithm not in names and (needed := one.refused(asked_bytes))
        ),
    ]
    if not ranked:
        raise InputError(f"nothing can be advised: {'; '.join(left_out)}")
    regions = [] if at_size_only else question.over_sizes().regions()
    again = (
        f"`earlybird measure collective --op {question.operation} --ranks {placed.ranks} "
        f"--map-by {placed.map_by} --sizes {size_argument(asked_bytes)} --launches 7 -o RUN` on an idle "
        "machine"
    )
    models = {id(one.model): one.model for one in candidates if one.form.algorithm in names}
    return Advice(
        "collective",
        {"operation": question.operation, "ranks": placed.ranks, "size_bytes": asked_bytes,
         "map_by": placed.map_by, "layout": placed.layout.text, "root": placed.root},
        DEFAULT if ranked[0].option.speed_up else "",
        tuple(_alternative(one, placed, asked_bytes, question.family) for one in ranked),
        tuple(_size_range(*region, placed, question.family) for region in regions),
        profile_id,
        (
            *options.notes([one.option for one in ranked], ranked[0].option, again),
            *notes,
            *left_out,
            *reservations([*models.values()], placed, [asked_bytes]),
        ),
    )  # fmt: skip


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
    questions: Sequence[_Question], size_bytes: int | None, selection: Selection | None
) -> Configuration | None:
    """The configuration for the best of the MPI's own algorithms of all operations; at `size_bytes` if the
    MPI accepts only one for all sizes."""
    placed, family = questions[0].placed, questions[0].family
    of_mpi = [
        [one for one in question.candidates if _has_setting(one.form, family)] for question in questions
    ]
    if family is None or not any(of_mpi):
        return None
    if family != "mpich":
        selection = None
    if selection is not None:
        of_mpi = [
            [one for one in able if mpich_selects(one.form.operation, one.method, placed.ranks)]
            for able in of_mpi
        ]
    regions = [
        region
        for question, able in zip(questions, of_mpi, strict=True)
        for region in _regions(question, able)
    ]
    if selection is not None:
        return selection_configuration(selection, regions, len(np.unique(placed.node)))
    if family == "openmpi" and _has_nodes_of_several_ranks(placed):
        return _rules_for_all_or_none(regions, size_bytes)
    return configuration(family, regions, size_bytes)


def _regions(question: _Question, able: Sequence[_Candidate]) -> list[Region]:
    """What was measured to be faster than the default, among the candidates that can be set; without any
    times of the default, what the models predict to be fastest."""
    operation, ranks = question.operation, question.placed.ranks
    if not able:
        return [Region(operation, DEFAULT, ranks)]
    question = replace(question, candidates=able)
    if question.default is not None:
        found = question.measured_regions()
        return [Region(operation, one.method, ranks, start, end) for start, end, one in found] or [
            Region(operation, DEFAULT, ranks)
        ]
    found = question.over_sizes().regions()
    last = len(found) - 1
    return [
        Region(operation, one.method, ranks, start if k else 0, None if k == last else end - 1)
        for k, (start, end, one) in enumerate(found)
    ]


def _rules_for_all_or_none(regions: Sequence[Region], size_bytes: int | None) -> Configuration:
    """Rules of Open MPI on several nodes of several ranks, if no operation keeps its default at any size.

    They only apply if the component `tuned` has priority, for every operation; its own choice differs from
    that of `han`, the default of the MPI on such nodes.
    """
    settings = configuration("openmpi", regions, size_bytes)
    # `size_bytes` outside the regions of a gather or scatter gives it the default, though no region has it.
    kept_regions = [one for one in (*regions, *settings.regions) if one.method == DEFAULT]
    keeping = list(dict.fromkeys(one.operation for one in kept_regions))
    if settings.idle or not keeping:
        return settings
    others = [one for one in regions if one.method != DEFAULT]
    operations = settings.operations
    reason = f"{_OTHER_DEFAULT}, which is best at other sizes"
    if len(operations) > 1:
        kept = labels.listed(keeping)
        reason = (
            f"{_OTHER_DEFAULT}, in every operation, and at some sizes of {kept} nothing is clearly faster "
            "than that one"
        )
        gaining = [one for one in operations if one not in keeping]
        if gaining:
            reason += f" (rules for {labels.listed(gaining)} alone would change {kept}, too)"
    nothing = [Region(operation, DEFAULT, regions[0].ranks) for operation in operations]
    return replace(configuration("openmpi", nothing), left_out=dict.fromkeys(others, reason))


def _has_nodes_of_several_ranks(placed: Placed) -> bool:
    _, ranks = np.unique(placed.node, return_counts=True)
    return len(ranks) > 1 and bool(ranks.max() > 1)


def _extra(settings: Configuration | None) -> dict[str, Any]:
    return {} if settings is None else {CONFIG: _config_json(settings)}


def _config_json(settings: Configuration) -> dict[str, Any]:
    """Of several operations, regions name theirs."""
    several = len(settings.operations) > 1
    return {
        "kind": settings.kind,
        "text": settings.text,
        "use": settings.use,
        "left_out": [
            f"{region.operation}: {region.describe()}" if several else region.describe()
            for region in settings.left_out
        ],
        "regions": [
            ({"operation": one.operation} if several else {})
            | {"method": one.method, "from_bytes": one.from_bytes, "to_bytes": one.to_bytes}
            for one in settings.regions
        ],
    }
