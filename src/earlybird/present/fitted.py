"""Adds to a report's material the times that profiles predict, Insaghi's regressions and verifications."""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from earlybird.compare.trees import verify
from earlybird.data.collective_algorithms import VERIFICATION, parse_method
from earlybird.data.insaghi import load_insaghi
from earlybird.data.kernels import PIPELINE
from earlybird.data.methods import ONE_RECEIVES, receivers_of
from earlybird.data.profile import Profile
from earlybird.data.run import Sample
from earlybird.fit.collective_samples import is_collective, placed_ranks
from earlybird.models.collective import CollectiveCosts, Hops, collective_time_s, count_hops, make_calls
from earlybird.predict.pipelined import FITTED, MethodModel, method_models
from earlybird.predict.published_collectives import published_mapping, published_us
from earlybird.present.material import Material, MeasuredRun, ReferenceCurve, Verification, profile_mpi
from earlybird.present.subjects.collectives.view import is_timed

SOURCE = "Insaghi"
US = 1e6
# Insaghi's forms 1 and 2 hold for one byte, form 3 for larger powers of two.
SMALL_BYTES, LARGEST_BYTES = 8, 1 << 20
CURVE_POINTS = 60


def with_fitted(material: Material) -> Material:
    """Return `material` with the times of the profiles' models for the pipelines and collectives that they
    describe."""
    return with_collectives(with_pipelines(material))


def with_pipelines(material: Material) -> Material:
    """Return `material` with the times of the profiles' models for the measured pipelines that they describe,
    by method, level, threads and contexts."""
    fitted: dict[tuple[Any, ...], float] = {}
    for run in material.runs:
        samples = [sample for sample in run.samples if _has_delay(sample)]
        for profile in profiles_of(run, material.profiles):
            models_of = functools.cache(functools.partial(_models, profile))
            for sample in samples:
                config = sample.config
                if config.get("mpi") == profile_mpi(profile):
                    models = models_of(config["level"], config["threads"], receivers_of(config))
                    model = models.get((sample.method, config.get("vcis")))
                    if model is not None:
                        fitted.setdefault(sample.point(), _fitted_s(model, config))
    return replace(material, fitted_pipelines=fitted)


def _has_delay(sample: Sample) -> bool:
    """Return whether the models describe `sample`: they have one late partition and no noise."""
    return (
        sample.kernel == PIPELINE.name
        and "partitions" in sample.config
        and "compute_s_per_byte" not in sample.config
    )


def profiles_of(run: MeasuredRun, profiles: tuple[Profile, ...]) -> list[Profile]:
    """Return the profiles, those fitted to this run first."""
    run_id = run.header.get("id")
    return sorted(profiles, key=lambda profile: all(source.get("id") != run_id for source in profile.runs))


def _models(profile: Profile, level: str, threads: int, receivers: str) -> dict[tuple[Any, ...], MethodModel]:
    if any((form.what.receivers or ONE_RECEIVES) != receivers for form in profile.pipelines):
        return {}
    return {
        (model.method, model.vcis): model
        for model in method_models(profile, level, threads)
        if model.source == FITTED
    }


def _fitted_s(model: MethodModel, config: Mapping[str, Any]) -> float:
    size, partitions = config["size_bytes"], config["partitions"]
    delay_s = config.get("gamma_s_per_byte", 0.0) * (size // partitions)
    return float(model.time_s(size, partitions, delay_s))


def with_collectives(material: Material) -> Material:
    """Return `material` with the times of the profiles' forms for the measured collectives that they
    describe, the published regressions of the same operations and mappings, and the verifications of
    algorithms."""
    fitted: dict[tuple[Any, ...], float] = {}
    timed = {
        id(run): [sample for sample in run.samples if is_collective(sample) and is_timed(sample)]
        for run in material.runs
    }
    for run in material.runs:
        for profile in profiles_of(run, material.profiles) if timed[id(run)] else ():
            for point, time_s in _fitted(run, timed[id(run)], profile).items():
                fitted.setdefault(point, time_s)
    measured = [sample for samples in timed.values() for sample in samples]
    verifications = [verification for run in material.runs for verification in _verifications(run)]
    return replace(
        material,
        fitted_collectives=fitted,
        references=tuple(_references(measured)),
        verifications=tuple(verifications),
    )


def _fitted(run: MeasuredRun, samples: Iterable[Sample], profile: Profile) -> dict[tuple[Any, ...], float]:
    forms = {(form.operation, form.algorithm, form.mpi): form for form in profile.collectives}
    launches = {str(launch.get("id")): launch for launch in run.launches}
    chosen: dict[tuple[Any, ...], dict[tuple[Any, ...], tuple[Hops, int, int]]] = {key: {} for key in forms}
    counted: dict[tuple[Any, ...], Hops] = {}
    for sample in samples:
        config, point = sample.config, sample.point()
        method = parse_method(sample.method or "")
        key = config["operation"], method.name, str(config.get("mpi", ""))
        if key not in forms or point in chosen[key]:
            continue
        hops = _hops(forms[key].structure, config, launches.get(sample.launch, {}), counted)
        if hops is not None:
            chosen[key][point] = hops, int(config["size_bytes"]), method.segment_bytes
    result: dict[tuple[Any, ...], float] = {}
    for key, points in chosen.items():
        if points:
            hops, sizes, segments = zip(*points.values(), strict=True)
            costs = CollectiveCosts(**forms[key].parameters.columns())
            times_s = collective_time_s(make_calls(hops, np.array(sizes), np.array(segments)), costs)
            result |= dict(zip(points, times_s.tolist(), strict=True))
    return result


def _hops(
    structure: str, config: Mapping[str, Any], launch: Mapping[str, Any], counted: dict[tuple[Any, ...], Hops]
) -> Hops | None:
    """Return the hops for the placement observed in the launch; each placement is counted once."""
    ranks, map_by, layout = int(config["ranks"]), str(config.get("map_by", "")), str(config.get("layout", ""))
    placed = placed_ranks(launch.get("placement") or (), layout, map_by, ranks)
    if placed is None:
        return None
    root = int(config.get("root", 0))
    key = structure, root, *(part.tobytes() for part in placed)
    if key not in counted:
        counted[key] = count_hops(structure, *placed, root)
    return counted[key]


def _verifications(run: MeasuredRun) -> Iterable[Verification]:
    """Return, for every MPI of a run, the verifications of algorithms with a known tree."""
    by_mpi: dict[str, list[Sample]] = {}
    for sample in run.samples:
        if sample.quantity == VERIFICATION:
            by_mpi.setdefault(str(sample.config.get("mpi", "")), []).append(sample)
    for mpi, samples in by_mpi.items():
        for result in verify(samples, run.launches).values():
            if result.tree is not None:
                edges = [f"{parent}->{child}" for parent, child in result.verification.edges or ()]
                seen = result.verification.seen or " ".join(edges)
                verdict = result.verification.verdict
                yield Verification(
                    mpi,
                    result.operation,
                    result.method,
                    result.ranks,
                    result.map_by,
                    result.tree,
                    verdict,
                    seen,
                )


def _references(measured: Iterable[Sample]) -> Iterable[ReferenceCurve]:
    """Return the published regressions for every operation, mapping and size that was measured."""
    max_ranks: dict[tuple[str, str, int], int] = {}
    for sample in measured:
        config = sample.config
        curve = str(config["operation"]), str(config.get("map_by", "")), int(config["size_bytes"])
        max_ranks[curve] = max(max_ranks.get(curve, 0), int(config["ranks"]))
    insaghi = load_insaghi()
    for (operation, map_by, size_bytes), ranks in max_ranks.items():
        if ranks <= 2 or size_bytes > LARGEST_BYTES:
            continue
        counts = np.unique(np.geomspace(2, ranks, CURVE_POINTS).round().astype(int))
        for regression in insaghi.regressions:
            same = (regression.operation, regression.map_by) == (operation, published_mapping(map_by))
            if same and (regression.form == 3) != (size_bytes <= SMALL_BYTES):
                times_s = published_us(regression, counts, size_bytes, insaghi.break_ranks) / US
                values = tuple(counts.tolist()), tuple(times_s.tolist())
                yield ReferenceCurve(SOURCE, operation, regression.algorithm, map_by, size_bytes, *values)
