"""The chapter on the measurements: machine, MPI, placement, state of every measurement, provenance."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.report.chapters.machine import MEASURE
from earlybird.report.material import Material, labelled_profiles
from earlybird.report.parts import Chapter, Light, Table, grouped, table_of
from earlybird.report.views import links, provenance

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
    samples = [(number, sample) for number, run in enumerate(material.runs) for sample in run.samples]
    points = grouped(samples, lambda one: (one[0], one[1].point()))
    if not points:
        return "No measurement was given to this report."
    groups = [[sample for _, sample in point] for point in points.values()]
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
    limited = any(light.link_limited for light in lights)
    return table_of(
        "Samples of each measurement, one per point and launch",
        lights,
        {
            "measurement": lambda light: light.what,
            "samples": lambda light: str(light.samples),
            "noisy": lambda light: str(light.noisy),
            "oversubscribed": lambda light: str(light.oversubscribed),
            **({"link-limited": lambda light: str(light.link_limited)} if limited else {}),
            "wrong data": lambda light: str(light.wrong),
        },
    )
