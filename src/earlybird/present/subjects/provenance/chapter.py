"""The chapter on the measurements: machine, MPI, placement, state of every measurement, keys of runs."""

from earlybird.data import labels
from earlybird.data.statistics import MEAN
from earlybird.present import commands
from earlybird.present.core.parts import Chapter, Light
from earlybird.present.core.text import crowd
from earlybird.present.material import Material, labelled_profiles
from earlybird.present.subjects.provenance import view

ID = "measured"
QUESTION = "How was it measured?"
TERMS = (
    "A sample is one point, such as ping-pong of 64 KiB, in one launch. It has converged if it met the stop "
    "rule before its time was spent; otherwise it is noisy. It is oversubscribed if there were more ranks or "
    "threads than cores, so that its times include scheduling delays."
)


def measured_chapter(material: Material) -> Chapter:
    """Return the chapter on the runs, or the machines of the profiles without any."""
    runs = material.runs
    if not runs:
        known = [
            f"The profile of {label} was fitted on {view.machine_text(profile.machine)}."
            for profile, label in labelled_profiles(material)
            if profile.machine
        ]
        return Chapter(ID, QUESTION, " ".join(known), absent=[("To measure, run", commands.measure())])
    lights = _lights(material)
    table = view.samples_table(lights)
    return Chapter(
        ID,
        QUESTION,
        _sentence(material),
        [*(view.run_line(run) for run in runs), TERMS],
        lights=lights,
        warnings=view.remedies(runs, lights),
        tables=[table, *(view.run_table(run) for run in runs)],
        brief=[table],
    )


_MEANS = (
    "Measured times are means over the iterations of all launches, with 90 % intervals by Student's t; "
    "speed-ups, and what is compared with predictions, are medians."
)


def trust(material: Material) -> str:
    """Return how many samples converged, are noisy, oversubscribed or wrong; how many ranks were recorded."""
    wrong = sum(light.wrong for light in _lights(material))
    if not any(run.samples for run in material.runs):
        return (
            _recorded(material)
            or _checked(material)
            or _guided(material)
            or "No measurement was given to this report."
        )
    state = f"{_state(material)}. {_recorded(material)}".rstrip()
    state += f" {_MEANS}" * (material.statistic == MEAN)
    return f"Received data were wrong in {labels.counted(wrong, 'sample')}. {state}" if wrong else state


def _recorded(material: Material) -> str:
    """Return `8 of 8 ranks were recorded until MPI_Finalize.`; "" without a recording."""
    whole = sum(recording.size for recording in material.recordings)
    ended = sum(len(recording.ranks) - len(recording.ended_early) for recording in material.recordings)
    if not material.recordings:
        return ""
    verb = "was" if whole == 1 else "were"
    return f"{ended} of {labels.counted(whole, 'rank')} {verb} recorded until MPI_Finalize."


def _checked(material: Material) -> str:
    """Return `The nodes were checked in 2 launches.`; "" without a check."""
    launches = sum(check.launches for check in material.checks)
    return f"The nodes were checked in {labels.counted(launches, 'launch', 'launches')}." if launches else ""


def _guided(material: Material) -> str:
    """Return `Each collective was measured in 10 launches or more.`; "" without guidelines."""
    counts = [
        min(check.launches, check.bound_launches)
        for guidelines in material.guidelines
        for check in guidelines.checks
    ]
    if not counts:
        return ""
    return f"Each collective was measured in {labels.counted(min(counts), 'launch', 'launches')} or more."


def _lights(material: Material) -> list[Light]:
    several = len(material.runs) > 1
    return [light for run in material.runs for light in view.lights(run, several, material.patterns)]


def _state(material: Material) -> str:
    """Return `37 of 39 samples converged, 2 noisy, 4 oversubscribed (more ranks than cores)`."""
    lights = _lights(material)
    total = Light(
        "",
        sum(light.samples for light in lights),
        sum(light.noisy for light in lights),
        sum(light.oversubscribed for light in lights),
        wrong=0,
        link_limited=sum(light.link_limited for light in lights),
    )
    return total.summary(crowd(view.crowd_text(material.runs)))


def _sentence(material: Material) -> str:
    machines = {view.machine_text(run.machine): None for run in material.runs}
    mpis = {view.mpi_text(launch): None for run in material.runs for launch in run.launches}
    start = f"{labels.listed(list(mpis)) or 'MPI'} on {labels.listed(list(machines))}"
    has_samples = any(run.samples for run in material.runs)
    return labels.capital(f"{start}: {_state(material) if has_samples else 'the run has no samples yet'}.")
