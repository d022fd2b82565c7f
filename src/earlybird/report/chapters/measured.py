"""The chapter on the measurements: machine, MPI, placement, state of every measurement, provenance."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.report import links, provenance
from earlybird.report.chapters.machine import MEASURE
from earlybird.report.curves import labelled_profiles
from earlybird.report.material import Material
from earlybird.report.parts import Chapter, Light, Table

ID = "measured"
QUESTION = "How was it measured?"


def measured_chapter(material: Material) -> Chapter:
    runs = material.runs
    if not runs:
        known = [
            f"The profile of {label} was fitted on {provenance.machine_text(profile.machine)}."
            for profile, label in labelled_profiles(material)
            if profile.machine
        ]
        return Chapter(ID, QUESTION, " ".join(known), absent=[("To measure, run", MEASURE)])
    lights = [light for run in runs for light in provenance.lights(run, len(runs) > 1, material.patterns)]
    table = _lights_table(lights)
    return Chapter(
        ID,
        QUESTION,
        _sentence(material),
        [provenance.run_line(run) for run in runs],
        lights=lights,
        warnings=provenance.remedies(runs, lights),
        tables=[table, *(provenance.run_table(run) for run in runs)],
        brief=[table],
    )


def trust(material: Material) -> str:
    """How many points converged, are noisy, oversubscribed or wrong; a point may have several launches."""
    points: dict[tuple, list] = {}
    for number, run in enumerate(material.runs):
        for sample in run.samples:
            points.setdefault((number, sample.point()), []).append(sample)
    if not points:
        return "No measurement was given to this report."
    groups = points.values()
    noisy = sum(not all(sample.converged for sample in group) for group in groups)
    crowded = sum(any(sample.oversubscribed for sample in group) for group in groups)
    wrong = sum(not all(sample.validated for sample in group) for group in groups)
    counts = ((noisy, "noisy"), (crowded, "oversubscribed"))
    doubts = "".join(f", {number} {what}" for number, what in counts if number)
    state = f"{len(points) - noisy} of {labels.counted(len(points), 'point')} converged{doubts}."
    return f"Received data were wrong in {labels.counted(wrong, 'point')}. {state}" if wrong else state


def _sentence(material: Material) -> str:
    samples = [sample for run in material.runs for sample in run.samples]
    machines = {provenance.machine_text(run.machine): None for run in material.runs}
    mpis = {provenance.mpi_text(launch): None for run in material.runs for launch in run.launches}
    start = f"{labels.listed(list(mpis)) or 'MPI'} on {labels.listed(list(machines))}"
    if not samples:
        return labels.capital(f"{start}: the run holds no samples yet.")
    noisy = sum(not sample.converged for sample in samples)
    crowded = sum(sample.oversubscribed for sample in samples)
    state = "all converged" if not noisy else f"{len(samples) - noisy} converged and {noisy} stayed noisy"
    over = f", {crowded} with more {provenance.crowd_text(material.runs)} than cores" if crowded else ""
    limited = sum(len(links.limited_samples(run, material.patterns)) for run in material.runs)
    over += f" (of these, {limited} were limited by a link)" if limited else ""
    return labels.capital(f"{start}: {labels.counted(len(samples), 'sample')} measured, {state}{over}.")


def _lights_table(lights: Sequence[Light]) -> Table:
    header = ["measurement", "samples", "noisy", "oversubscribed", "wrong data"]
    rows = [
        [light.what, *map(str, (light.samples, light.noisy, light.oversubscribed, light.wrong))]
        for light in lights
    ]
    if any(light.link_limited for light in lights):
        header.insert(4, "link-limited")
        for row, light in zip(rows, lights, strict=True):
            row.insert(4, str(light.link_limited))
    return Table("Samples of each measurement, one per point and launch", header, rows)
