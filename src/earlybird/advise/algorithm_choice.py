"""The algorithms of a collective operation to choose from on one placement: what is known of each at a size,
the best one, and the sizes at which it changes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, pairwise

import numpy as np

from earlybird.advise import options
from earlybird.advise.crossovers import best_by_size
from earlybird.advise.options import Option
from earlybird.compare.changes import adjusted
from earlybird.compare.runs import LEVEL
from earlybird.data.advice import EXTRAPOLATED, MEASURED, MODEL
from earlybird.data.collective_algorithms import DEFAULT, FAMILY_NAMES, OWN, Method, family_of
from earlybird.data.collective_form import CollectiveForm
from earlybird.data.profile import Profile
from earlybird.data.results import Result
from earlybird.predict.collective import (
    AlgorithmModel,
    Placed,
    algorithm_models,
    extrapolated,
    lacking_size,
    refusal,
)
from earlybird.predict.measured_collectives import MeasuredCollectives
from earlybird.predict.outlook import Outlook
from earlybird.predict.profiles import measured_results


@dataclass(frozen=True, eq=False)
class Candidate:
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
        """The effort to select the candidate: from the default of the MPI (least) to another call in the
        program (most).
        """
        return (
            self.form.algorithm != DEFAULT,
            self.form.algorithm.startswith(OWN) or Method(self.form.algorithm).is_persistent,
            self.segment_bytes > 0,
        )

    def refused(self, size_bytes: float) -> str | None:
        """Return the unmet requirement of the algorithm, without which the MPI would silently use another
        one, or None.
        """
        # Reductions use whole doubles, also at sizes between the measured ones.
        whole_bytes = int(size_bytes) // 8 * 8 or int(size_bytes)
        return lacking_size(self.form, size_bytes) or refusal(
            self.form, self.model.hops.ranks, whole_bytes, self.segment_bytes
        )


@dataclass(frozen=True)
class Judged:
    """A candidate and the facts known about it at one size."""

    candidate: Candidate
    outlook: Outlook
    option: Option
    outside: tuple[str, ...]  # quantities outside the measured range


@dataclass(frozen=True)
class AlgorithmChoice:
    """A choice among the algorithms of an operation on one placement."""

    candidates: Sequence[Candidate]
    results: Sequence[Result]
    placed: Placed
    family: str | None  # of the MPI
    left_out: Sequence[str] = ()  # why further algorithms are no candidates
    _reliable: dict[int, bool] = field(default_factory=dict, init=False)
    _judged: dict[float, list[Judged]] = field(default_factory=dict, init=False)

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

    def judged(self, size_bytes: float) -> list[Judged]:
        """Return every candidate that the MPI accepts at this size, with the facts known about it."""
        if size_bytes not in self._judged:
            has_default = self.default is not None and not lacking_size(self.default.form, size_bytes)
            self._judged[size_bytes] = [
                self._judge(one, size_bytes, has_default)
                for one in self.candidates
                if not one.refused(size_bytes)
            ]
        return self._judged[size_bytes]

    def _judge(self, candidate: Candidate, size_bytes: float, has_default: bool) -> Judged:
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
            self._is_reliable(model) or self._is_settled(model, size_bytes),
            model is self.default or not has_default or self._is_significant(candidate, size_bytes),
            0 if outlook.result is None else outlook.result.launches,
            options.share_cores(
                self.measured.results_of(model) if outlook.result is None else [outlook.result]
            ),
            not candidate.form.algorithm.startswith(OWN),
        )
        return Judged(candidate, outlook, option, outside)

    def _is_reliable(self, model: AlgorithmModel) -> bool:
        if id(model) not in self._reliable:
            pair = [model, self.default] if self.default else [model]
            self._reliable[id(model)] = all(options.decides(self.measured.results_of(one)) for one in pair)
        return self._reliable[id(model)]

    def _is_settled(self, model: AlgorithmModel, size_bytes: float) -> bool:
        """Return whether this size was measured often enough, whatever the launches at other sizes."""
        pair = [model, self.default] if self.default else [model]
        return all(options.settles(self.measured.results_at(one, size_bytes)) for one in pair)

    @cached_property
    def _significant(self) -> set[tuple[int, tuple[int, int]]]:
        """The measured points, by the id of their model, whose speed-up differs significantly from 1 among
        all algorithms, segments and sizes that were measured (Benjamini and Hochberg).
        """
        p = self.measured.p_values()
        q = adjusted(np.array(list(p.values())))
        return {point for point, value in zip(p, q.tolist(), strict=True) if value <= LEVEL}

    def _is_significant(self, candidate: Candidate, size_bytes: float) -> bool:
        """Return whether the speed-up of the candidate is significant at this point; if the point was not
        measured, whether the algorithm's speed-up is significant at the next measured size below or above.
        True if the algorithm was not measured on these ranks.
        """
        if not self.measured.are_launches_known:
            return True
        model = candidate.model
        sizes = self.measured.sizes_bytes(model)
        if size_bytes in sizes:
            key = id(model), (int(size_bytes), candidate.segment_bytes)
            return key in self._significant or (
                not self.measured.has(model, size_bytes, candidate.segment_bytes)
                and self._has_significant(model, size_bytes)
            )
        below = [size for size in sizes if size < size_bytes]
        above = [size for size in sizes if size > size_bytes]
        return not sizes or any(self._has_significant(model, size) for size in (*below[-1:], *above[:1]))

    def _has_significant(self, model: AlgorithmModel, size_bytes: float) -> bool:
        return any(key == id(model) and point[0] == size_bytes for key, point in self._significant)

    def best(self, size_bytes: float) -> Judged:
        judged = self.judged(size_bytes)
        return judged[options.choose([one.option for one in judged])]

    def ranking(self, size_bytes: float) -> list[Judged]:
        """Return the advised candidate first, then the best of every other algorithm, see `options.order`."""
        judged = [self._with_prediction(one, size_bytes) for one in self.judged(size_bytes)]
        ranked = [judged[k] for k in options.order([one.option for one in judged])] if judged else []
        first: dict[str, Judged] = {}
        for one in ranked:
            first.setdefault(one.candidate.form.algorithm, one)
        return list(first.values())

    def _with_prediction(self, judged: Judged, size_bytes: float) -> Judged:
        """Return `judged` with the values that the form alone predicts."""
        if judged.option.speed_up is None:
            return judged
        candidate = judged.candidate
        predicted = self.measured.predicted_speed_up(candidate.model, size_bytes, candidate.segment_bytes)
        return replace(judged, option=replace(judged.option, predicted_speed_up=predicted))

    def keeps(self, candidate: Candidate, size_bytes: float) -> bool:
        """Return whether `candidate` stays advised at this size."""
        judged = self.judged(size_bytes)
        current = next((one.option for one in judged if one.candidate is candidate), None)
        return current is not None and options.stays(current, [one.option for one in judged])

    @cached_property
    def sizes_bytes(self) -> tuple[int, int]:
        """The smallest and largest measured size: those of the default if it was measured at several
        sizes.
        """
        ranges = [one.form.range["size_bytes"] for one in self.candidates]
        of_default = self.default and self.default.form.range["size_bytes"]
        if of_default and of_default[0] < of_default[1]:
            ranges = [of_default]
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    def over_sizes(self) -> "AlgorithmChoice":
        """Return the choice for candidates measured at several sizes, if there are any: one size is no
        region.
        """
        several = [one for one in self.candidates if len(set(one.form.range["size_bytes"])) > 1]
        return replace(self, candidates=several or self.candidates)

    def regions(self) -> list[tuple[int, int, Candidate]]:
        """Return the regions from small to large sizes: first size, last size and candidate of each."""
        smallest, largest = self.sizes_bytes
        if smallest == largest:  # a barrier has only size 0
            return [(smallest, largest, self.best(smallest).candidate)]
        return best_by_size(smallest, largest, lambda size: self.best(size).candidate, self.keeps)

    def measured_regions(self) -> list[tuple[int, int, Candidate]]:
        """Return the regions that deviate from the default only where that was measured to be clearly faster:
        at measured sizes, and between two of them where this holds at both. All other sizes between them keep
        the default. A size counts only if the algorithm is also clearly faster at a measured size next to it.

        Returns an empty list without a measured default on this placement. The last size of a region belongs
        to it.
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

    def _best_measured(self, default: Candidate, sizes: Sequence[int]) -> list[Candidate]:
        """Return the best candidate at each size among those that are proven; a candidate stays until another
        is clearly faster.
        """
        found, current = [], default
        for size in sizes:
            proven = [one for one in self.judged(size) if self._proven(one.candidate, size)]
            known = [one.option for one in proven]
            kept = next((one.option for one in proven if one.candidate is current), None)
            if kept is None or not options.stays(kept, known):
                current = proven[options.choose(known)].candidate
            found.append(current)
        return found

    def _proven(self, candidate: Candidate, size_bytes: int) -> bool:
        """Return whether `candidate` is the default, or was measured to be clearly faster at this size and
        next to it.
        """
        option = next((one.option for one in self.judged(size_bytes) if one.candidate is candidate), None)
        if option is None or option.is_reference:
            return option is not None
        is_faster = option.basis == MEASURED and option.is_clearly_faster
        return is_faster and self._is_supported(candidate, size_bytes)

    def _is_supported(self, candidate: Candidate, size_bytes: int) -> bool:
        """Return whether the algorithm, with any segments, is clearly faster at a measured size next to this
        one; false if only one size was measured.
        """
        sizes = self.measured.sizes_bytes(self.default)
        at = sizes.index(size_bytes)
        next_to = (*sizes[:at][-1:], *sizes[at + 1 :][:1])
        return not next_to or any(self._is_faster(candidate.model, size) for size in next_to)

    def _is_faster(self, model: AlgorithmModel, size_bytes: int) -> bool:
        return any(
            one.candidate.model is model and one.option.basis == MEASURED and one.option.is_clearly_faster
            for one in self.judged(size_bytes)
        )

    def unsupported(self) -> list[tuple[int, Candidate]]:
        """Return the measured sizes at which an algorithm is clearly faster alone, each with the candidate
        that would be best there.
        """
        found = []
        for size in [] if self.default is None else self.measured.sizes_bytes(self.default):
            judged = self.judged(size)
            best = judged[options.choose([one.option for one in judged])]
            is_known = best.option.basis == MEASURED and not best.option.is_reference
            if is_known and not self._is_supported(best.candidate, size):
                found.append((size, best.candidate))
        return found


def algorithm_choice(profile: Profile, forms: Sequence[CollectiveForm], placed: Placed) -> AlgorithmChoice:
    models, left_out = algorithm_models(forms, placed)
    candidates = [Candidate(model, one) for model in models for one in _segments(model.form)]
    operation, mpi = forms[0].operation, forms[0].mpi
    results = [one for one in measured_results(profile) if one.config.get("operation") == operation]
    family = mpi if mpi in FAMILY_NAMES else family_of(profile.context)
    return AlgorithmChoice(candidates, results, placed, family, left_out)


def beyond(form: CollectiveForm, placed: Placed, size_bytes: float, segment_bytes: int) -> tuple[str, ...]:
    """Return the quantities outside the measured range; a layout other than that of the measured machine is
    one, too.
    """
    machine = "x".join(str(form.machine.get(name)) for name in ("nodes", "sockets", "cores"))
    outside = extrapolated(form, placed, size_bytes, segment_bytes)
    return outside if placed.shape == machine or "ranks" in outside else (*outside, "layout")


def _segments(form: CollectiveForm) -> list[int]:
    """Return the measured segment sizes, and the powers of two between them: the form covers all."""
    cut = [one for one in form.segments_bytes if one]
    between = {1 << k for k in range(40) if cut and min(cut) <= 1 << k <= max(cut)}
    return sorted({*form.segments_bytes, *between})
