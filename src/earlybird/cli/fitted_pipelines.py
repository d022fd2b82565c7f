"""Adds to measured pipelines the times of the profiles' pipeline models, for the report."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from earlybird.data.profile import Profile
from earlybird.data.run import Sample
from earlybird.predict.pipelined import MEASURED, MethodModel, method_models
from earlybird.report.material import Material, MeasuredRun, profile_mpi


def with_fitted_pipelines(material: Material) -> Material:
    """`material` with the times of the profiles' models for the measured pipelines they describe, by method,
    level, threads and contexts."""
    fitted: dict[tuple, float] = {}
    known: dict[tuple, dict[tuple, MethodModel]] = {}
    for run in material.runs:
        samples = {sample.point(): sample for sample in run.samples if _has_delay(sample)}
        for profile in profiles_of(run, material.profiles):
            for point, sample in samples.items():
                config = sample.config
                if point in fitted or config.get("mpi") != profile_mpi(profile):
                    continue
                key = (id(profile), config["level"], config.get("threads", 1))
                if key not in known:
                    known[key] = _models(profile, *key[1:])
                model = known[key].get((sample.method, config.get("vcis")))
                if model is not None:
                    fitted[point] = _fitted_s(model, config)
    return replace(material, fitted_pipelines=fitted)


def _has_delay(sample: Sample) -> bool:
    """Whether the models describe `sample`: they have one late partition and no noise."""
    return sample.kernel == "pipeline" and "compute_s_per_byte" not in sample.config


def profiles_of(run: MeasuredRun, profiles: tuple[Profile, ...]) -> list[Profile]:
    """The profiles, those fitted to this run first."""
    run_id = run.header.get("id")
    return sorted(profiles, key=lambda profile: all(source.get("id") != run_id for source in profile.runs))


def _models(profile: Profile, level: str, threads: int) -> dict[tuple, MethodModel]:
    return {
        (model.method, model.vcis): model
        for model in method_models(profile, level, threads)
        if model.source == MEASURED
    }


def _fitted_s(model: MethodModel, config: Mapping[str, Any]) -> float:
    size, partitions = config["size_bytes"], config["partitions"]
    delay_s = config.get("gamma_s_per_byte", 0.0) * (size // partitions)
    return float(model.time_s(size, partitions, delay_s))
