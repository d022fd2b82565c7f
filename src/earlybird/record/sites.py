"""The phases of a recording to which the call sites of its simulation belong."""

from collections.abc import Sequence
from dataclasses import replace

from earlybird.data import labels
from earlybird.data.mpi_calls import base_name
from earlybird.data.phases import Phase, find_phases
from earlybird.data.recording import MIN_SLEPT, Recording
from earlybird.data.simulated_program import PhaseTotals, SimulatedProgram

Site = tuple[str, str]


def sites_of_phase(recording: Recording, phase: Phase) -> frozenset[Site]:
    """Return the call and place of each step of a phase, on any rank."""
    return frozenset(
        (base_name(step.call), step.place)
        for rank, numbers in phase.of_ranks.items()
        for number in numbers
        if number in recording.ranks[rank].phases
        for step in recording.ranks[rank].phases[number].steps
    )


def phases_of_sites(
    recording: Recording, phases: Sequence[Phase], sites: Sequence[Site]
) -> list[tuple[int, ...]]:
    """Return the numbers of the phases that have each site, ascending."""
    numbers: dict[Site, list[int]] = {}
    for phase in phases:
        for site in sites_of_phase(recording, phase):
            numbers.setdefault(site, []).append(phase.number)
    return [tuple(sorted(numbers.get(site, ()))) for site in sites]


def with_recording(simulated: SimulatedProgram, recording: Recording) -> SimulatedProgram:
    """Return the simulation with the folder of its recording and the sums of each recorded phase, of a window
    only those with calls in it; a site of several phases counts in the first."""
    totals = []
    for phase in find_phases(recording):
        rows = [row for row in simulated.phases if row.phases[:1] == (phase.number,)]
        if simulated.window and not rows:
            continue
        totals.append(
            PhaseTotals(
                phase.number, tuple(phase.calls), tuple(phase.functions), phase.epochs, phase.time_s,
                sum(row.recorded_s or 0.0 for row in rows), sum(row.computing_s for row in rows),
                sum(row.waiting_s for row in rows), sum(row.transfer_s for row in rows),
            )
        )  # fmt: skip
    named = replace(simulated, recording=str(recording.path), recorded_phases=tuple(totals))
    return with_sleep(named, recording)


def with_sleep(simulated: SimulatedProgram, recording: Recording) -> SimulatedProgram:
    """Return the simulation with the share of the run in which main threads slept, if it matters: when they
    would have gone on with a change is not in the recording."""
    share = recording.slept_share or 0.0
    if share < MIN_SLEPT:
        return simulated
    remark = (
        f"main threads slept for {labels.percent(share)} of the run or more outside of the MPI, for what is "
        "not recorded, such as condition variables or files. That counts as computing of the main thread: "
        "what faster or even computing of other threads gains is not known"
    )
    return replace(simulated, slept_share=share, notes=(*simulated.notes, remark))
