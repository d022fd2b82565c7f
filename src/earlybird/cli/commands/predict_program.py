"""`earlybird predict program`: the run time of a recorded program, simulated as it was and with changes."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from earlybird.cli.options.command import FORMAT
from earlybird.cli.options.outputs import check_output
from earlybird.cli.options.program import (
    NoisePercent,
    RecordedProgram,
    RecordingArgument,
    other_placement,
    partitions_option,
)
from earlybird.cli.options.shared import load_profiles
from earlybird.data.errors import InputError
from earlybird.present.render.data import Format
from earlybird.present.render.notes import note

if TYPE_CHECKING:
    from earlybird.record.advice import ProgramQuestion
    from earlybird.record.conditions import Conditions
    from earlybird.record.operations import Operations
    from earlybird.record.simulation import Change
    from earlybird.record.window import Window

_FACTOR = re.compile(r"([0-9]*\.?[0-9]+(?:e-?[0-9]+)?)x")
_MAX_FACTOR = 1e6


def program(
    recording: RecordingArgument,
    recorded: RecordedProgram,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a parameter of the profile, such as inter_node.bandwidth=2x."),
    ] = None,
    compute: Annotated[
        list[str] | None,
        typer.Option(
            help="What is computed before the calls of a site, such as exchange=0.5x or MPI_Allreduce=0.5x."
        ),
    ] = None,
    balance: Annotated[
        list[str] | None,
        typer.Option(help="Let all ranks compute the mean before the calls of a site, or of `all`."),
    ] = None,
    to_layout: Annotated[
        str | None, typer.Option(help="Other layout, such as 4x1x2 or 4x1x2:node for ranks by node.")
    ] = None,
    to_profile: Annotated[
        list[str] | None,
        typer.Option(help="Profile of another MPI or machine; repeat to combine levels."),
    ] = None,
    progress: Annotated[
        bool, typer.Option("--progress", help="Let messages begin while ranks compute.")
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write a timeline of the simulated run, for ui.perfetto.dev and Chrome."
        ),
    ] = None,
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            help="Collectives as messages of an algorithm, such as allreduce=ring; repeat for several."
        ),
    ] = None,
    partitions: Annotated[int | None, partitions_option()] = None,
    noise_percent: NoisePercent = None,
    aggregate: Annotated[
        bool,
        typer.Option(
            "--aggregate", help="Join the messages of one call site to the same rank that follow each other."
        ),
    ] = False,
    tolerance: Annotated[
        bool,
        typer.Option(
            "--tolerance",
            help="Also find the latencies and bandwidths at which the run is 1, 5, 10 % longer.",
        ),
    ] = False,
    window: Annotated[
        str | None,
        typer.Option(
            help="Only this part of the run: seconds since MPI_Init, such as 2s..5s, or calls of a blocking "
            "collective, such as MPI_Allreduce:10..20.  [default: from when no events are missing]"
        ),
    ] = None,
    format: Format = FORMAT,
) -> None:
    """Simulate a recorded program, as it was recorded and with changes.

    Every rank repeats its calls, computes between them as recorded, and waits for what it waited for;
    messages share the links as the profile says. Record with `--events all`. All changes are simulated
    together.
    """
    from earlybird.present.subjects.program.simulated import print_simulated_program
    from earlybird.record.conditions import conditions_as_recorded
    from earlybird.record.early_collectives import with_early_collectives
    from earlybird.record.simulation import predict_program
    from earlybird.record.sites import with_recording
    from earlybird.record.window import parse_window

    check_output(trace)
    chosen = None if window is None else parse_window(window)
    asked = recorded.question(recording, [], window=chosen)
    share = asked.recording.core_wait_share
    place = asked.profile, asked.place.layout
    replaced = {text.partition("=")[0] for text in algorithm or ()}
    operations = with_early_collectives(asked.operations, *place, kept=replaced)
    as_recorded = conditions_as_recorded(operations, *place)
    changes = _changes(operations, to_profile, to_layout, settings, compute, balance, progress)
    changes += _message_changes(operations, algorithm, aggregate, partitions, noise_percent)
    simulated = predict_program(operations, as_recorded, changes, share, tolerance)
    if trace is not None:
        _write_trace(trace, replace(asked, operations=operations), chosen, as_recorded, changes)
        note(f"wrote {trace}, the simulated run; open it in ui.perfetto.dev")
    print_simulated_program(with_recording(simulated, asked.recording), format)


def _write_trace(
    path: Path,
    asked: "ProgramQuestion",
    window: "Window | None",
    as_recorded: "Conditions",
    changes: "Sequence[Change]",
) -> None:
    """Write the calls and messages of the run with all changes, as `earlybird export --to chrome-trace` does
    of the recorded run."""
    from earlybird.data import files
    from earlybird.interop.chrome_trace import chrome_trace
    from earlybird.record.conditions import once_rewritten, simulate_run
    from earlybird.record.operations import events_for
    from earlybird.record.simulated_trace import trace_at
    from earlybird.record.simulation import with_changes

    joined = events_for(asked.recording, window)
    operations, given = once_rewritten(asked.operations, with_changes(as_recorded, changes))
    _, run = simulate_run(operations, given)
    events, matches = trace_at(joined.all_events, joined.matches, operations, run.end_s)
    with files.replace_when_complete(path) as temporary, open(temporary, "w", encoding="utf-8") as stream:
        stream.writelines(chrome_trace(events, matches, asked.recording))


def _changes(
    operations: "Operations",
    to_profile: list[str] | None,
    to_layout: str | None,
    settings: list[str] | None,
    compute: list[str] | None,
    balance: list[str] | None,
    progress: bool,
) -> "list[Change]":
    from earlybird.record import simulation

    changes = []
    if to_profile:
        changes.append(simulation.profile_change(load_profiles(to_profile), ", ".join(to_profile)))
    if to_layout is not None:
        other = other_placement(to_layout, operations.size).layout
        changes.append(simulation.layout_change(other, to_layout))
    if settings:
        changes.append(simulation.settings_change(settings))
    for text in compute or ():
        changes.append(simulation.computing_change(operations, *_site_and_factor(text)))
    for name in balance or ():
        changes.append(simulation.balance_change(operations, name))
    if progress:
        changes.append(simulation.progress_change())
    return changes


def _message_changes(
    operations: "Operations",
    algorithms: list[str] | None,
    aggregate: bool,
    partitions: int | None,
    noise_percent: float | None,
) -> "list[Change]":
    from earlybird.record import simulation

    if noise_percent is not None and partitions is None:
        raise InputError("--noise-percent is of --partitions; give the number of partitions, too")
    texts = algorithms or []
    if len({text.partition("=")[0] for text in texts}) < len(texts):
        raise InputError("--algorithm names an operation twice; give one algorithm of each")
    changes = [simulation.algorithm_change(operations, text) for text in texts]
    if aggregate:
        changes.append(simulation.aggregation_change())
    if partitions is not None:
        noise = None if noise_percent is None else noise_percent / 100
        changes.append(simulation.partitions_change(partitions, noise, operations))
    return changes


def _site_and_factor(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    factor = _FACTOR.fullmatch(value)
    if not name or not factor or not float(factor[1]) <= _MAX_FACTOR:
        raise InputError(
            f"--compute is {text!r}; give SITE=FACTORx with a factor up to {_MAX_FACTOR:g}, such as "
            "exchange=0.5x"
        )
    return name, float(factor[1])
