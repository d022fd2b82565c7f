"""The chapter on the measurements: machine, MPI, placement, state of every measurement, provenance."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.present import commands
from earlybird.present.core.parts import Chapter, Light
from earlybird.present.core.table import Table, table_of
from earlybird.present.material import Material, labelled_profiles
from earlybird.present.subjects.provenance import links
from earlybird.present.subjects.provenance import view as provenance

ID = "measured"
QUESTION = "How was it measured?"
TERMS = (
    "A sample is one point, such as ping-pong of 64 KiB, in one launch. It has converged if it met the stop "
    "rule before its time was spent; otherwise it is noisy. It is oversubscribed if there were more ranks or "
    "threads than cores, so that its times include scheduling delays."
)


def measured_chapter(material: Material) -> Chapter:
    runs = material.runs
    if not runs:
        known = [
            f"The profile of {label} was fitted on {provenance.machine_text(profile.machine)}."
            for profile, label in labelled_profiles(material)
            if profile.machine
        ]
        return Chapter(ID, QUESTION, " ".join(known), absent=[("To measure, run", commands.measure())])
    lights = [light for run in runs for light in provenance.lights(run, len(runs) > 1, material.patterns)]
    table = _lights_table(lights)
    return Chapter(
        ID,
        QUESTION,
        _sentence(material),
        [*(provenance.run_line(run) for run in runs), TERMS],
        lights=lights,
        warnings=provenance.remedies(runs, lights),
        tables=[table, *(provenance.run_table(run) for run in runs)],
        brief=[table],
    )


def trust(material: Material) -> str:
    """How many samples converged, are noisy, oversubscribed or wrong; how many ranks were recorded."""
    samples = [sample for run in material.runs for sample in run.samples]
    if not samples:
        return (
            _recorded(material)
            or _checked(material)
            or _guided(material)
            or "No measurement was given to this report."
        )
    wrong = sum(not sample.validated for sample in samples)
    state = f"{_state(material)}. {_recorded(material)}".rstrip()
    return f"Received data were wrong in {labels.counted(wrong, 'sample')}. {state}" if wrong else state


def _recorded(material: Material) -> str:
    """`8 of 8 ranks were recorded until MPI_Finalize.`; "" without a recording."""
    whole = sum(one.size for one in material.recordings)
    ended = sum(len(one.ranks) - len(one.ended_early) for one in material.recordings)
    if not material.recordings:
        return ""
    verb = "was" if whole == 1 else "were"
    return f"{ended} of {labels.counted(whole, 'rank')} {verb} recorded until MPI_Finalize."


def _checked(material: Material) -> str:
    """`The nodes were checked in 2 launches.`; "" without a check."""
    launches = sum(check.launches for check in material.checks)
    return f"The nodes were checked in {labels.counted(launches, 'launch', 'launches')}." if launches else ""


def _guided(material: Material) -> str:
    """`Each collective was measured in 10 launches or more.`; "" without guidelines."""
    counts = [min(c.launches, c.bound_launches) for one in material.guidelines for c in one.checks]
    if not counts:
        return ""
    return f"Each collective was measured in {labels.counted(min(counts), 'launch', 'launches')} or more."


def _state(material: Material) -> str:
    """`37 of 39 samples converged, 2 noisy, 4 oversubscribed (more ranks than cores)`."""
    samples = [sample for run in material.runs for sample in run.samples]
    noisy = sum(not sample.converged for sample in samples)
    crowded = sum(sample.oversubscribed for sample in samples)
    limited = sum(len(links.limited_samples(run, material.patterns)) for run in material.runs)
    more = f"more {provenance.crowd_text(material.runs)} than cores"
    more += f"; {limited} of them link-limited" if limited else ""
    return (
        f"{len(samples) - noisy} of {labels.counted(len(samples), 'sample')} converged"
        + f", {noisy} noisy" * bool(noisy)
        + f", {crowded} oversubscribed ({more})" * bool(crowded)
    )


def _sentence(material: Material) -> str:
    samples = [sample for run in material.runs for sample in run.samples]
    machines = {provenance.machine_text(run.machine): None for run in material.runs}
    mpis = {provenance.mpi_text(launch): None for run in material.runs for launch in run.launches}
    start = f"{labels.listed(list(mpis)) or 'MPI'} on {labels.listed(list(machines))}"
    if not samples:
        return labels.capital(f"{start}: the run holds no samples yet.")
    return labels.capital(f"{start}: {_state(material)}.")


def _lights_table(lights: Sequence[Light]) -> Table:
    limited = any(light.link_limited for light in lights)
    return table_of(
        "Samples of each measurement",
        lights,
        {
            "measurement": lambda light: light.what,
            "samples": lambda light: str(light.samples),
            "noisy": lambda light: str(light.noisy),
            "oversubscribed": lambda light: str(light.oversubscribed),
            **({"link-limited of these": lambda light: str(light.link_limited)} if limited else {}),
            "wrong data": lambda light: str(light.wrong),
        },
    )
