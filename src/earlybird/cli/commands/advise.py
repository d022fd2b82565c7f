"""`earlybird advise`: the recommended method or algorithm, with the setting or command to use it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from earlybird.advise.aggregation import advise_aggregation
from earlybird.advise.collective import advise_collectives
from earlybird.advise.layout import COUNT, INTERRUPT, SWAPS, Swaps, advise_layout
from earlybird.advise.pipelined import advise_pipeline
from earlybird.cli.options.command import FORMAT, given_arguments, make_group
from earlybird.cli.options.delay_rate import DelayOptions, refuse_long_delay
from earlybird.cli.options.mesh import MeshOptions
from earlybird.cli.options.nodes import EqualNodes, PatternPlace
from earlybird.cli.options.outputs import check_output, check_pattern_output, write_parts
from earlybird.cli.options.program import (
    NoisePercent,
    RecordedProgram,
    RecordingArgument,
    partitions_option,
)
from earlybird.cli.options.shared import (
    MAPPING,
    BufferOptions,
    CollectiveOptions,
    ModelOption,
    PatternArgument,
    ProfilesOption,
    QuietOption,
    check_size,
    load_profiles,
)
from earlybird.cli.options.values import SIZE, ListOf, above_zero
from earlybird.cli.session.exchanges import load_exchange
from earlybird.cli.session.progress import ProgressLine, shown_progress
from earlybird.data.advice import Advice
from earlybird.data.collective_algorithms import OPERATIONS
from earlybird.data.errors import InputError
from earlybird.data.layout import is_shape, parse_layout, require_csv_name, save_layout
from earlybird.data.levels import MAPPINGS
from earlybird.data.measure_commands import replay_command
from earlybird.data.pattern import save_pattern
from earlybird.data.profile import Profile
from earlybird.data.shell_commands import command_text, path_argument
from earlybird.data.units import format_seconds
from earlybird.interop.settings_file import write_settings
from earlybird.predict.collective import operations_of
from earlybird.present.render.data import Format
from earlybird.present.render.notes import note
from earlybird.present.subjects.advice.terminal import print_advice, print_collectives_advice
from earlybird.record.advice import advise_program
from earlybird.toolchain.selection import selection_of


def pipeline(buffer: BufferOptions, delay: DelayOptions, format: Format = FORMAT) -> None:
    """Recommend how to send a buffer that threads fill.

    Row 1 is the advised method: a single message, unless another method is clearly faster; among those, the
    one that is easiest to program and within 5 % of the fastest. The others follow by time, each with its
    best number of partitions. If the point was measured, the measured time is used. The second table lists
    the sizes at which the advised method changes. With --gamma the delay rate is the same for every number
    of partitions; with --ai, --ci and --frequency it depends on the number of partitions per thread.
    """
    joined = load_profiles(buffer.profile)
    size_bytes = buffer.size_bytes(partitions=buffer.threads)
    rate = delay.rate()
    refuse_long_delay(rate(1), size_bytes // buffer.threads)
    advice = advise_pipeline(
        joined, size_bytes, buffer.threads, rate, level=buffer.level, asked=delay.given()
    )
    print_advice(advice, format)


_ALL_OPERATIONS = "all"


@dataclass(frozen=True)
class CollectivesOptions(CollectiveOptions):
    """One collective operation or several."""

    op: Annotated[  # type: ignore[assignment]
        tuple[str, ...],
        typer.Option(help="Operations such as bcast,allreduce, or all of the profile: all."),
        ListOf(*OPERATIONS, _ALL_OPERATIONS),
    ]


def collective(
    call: CollectivesOptions,
    size: Annotated[
        int | None,
        typer.Option(help="Size at which to rank the algorithms.  [default: the largest measured]"),
        SIZE,
    ] = None,
    mpi_only: Annotated[
        bool,
        typer.Option(
            "--mpi-only",
            help="Only algorithms that the MPI can select: without Earlybird's, which are for comparison.",
        ),
    ] = False,
    config: Annotated[
        Path | None, typer.Option(help="File to write with settings that select the MPI's best algorithms.")
    ] = None,
    format: Format = FORMAT,
) -> None:
    """Recommend the algorithm of a collective operation, or of several.

    Row 1 is the advised algorithm: the MPI's default, unless another one is clearly faster. The others follow
    by time. The second table lists the sizes at which the advised algorithm changes. With several operations
    the first table has only the advised algorithm of each. --config writes a file of rules for Open MPI,
    environment variables for Intel MPI, and variables with two JSON files for MPICH, for all operations. It
    sets what was measured to be clearly faster than the default, and no algorithm of Earlybird's, which an
    MPI cannot select. The sizes that it sets are then printed instead of the second table, which includes
    what models predict between measured sizes.
    """
    joined = load_profiles(call.profile)
    operations = _operations(call.op, joined)
    if size is not None:
        check_size(size, operations)
    several, settings = advise_collectives(
        joined, operations, call.ranks, size, layout=call.layout, map_by=call.map_by, root=call.root,
        mpi_only=mpi_only, selection=None if config is None else selection_of(joined.context),
    )  # fmt: skip
    for remark in () if config is None else write_settings(settings, config):
        note(remark)
    if len(operations) == 1:
        print_advice(several.pieces()[0], format, with_sizes=config is None)
    else:
        print_collectives_advice(several, format, with_sizes=config is None)


def _operations(names: Sequence[str], profile: Profile) -> list[str]:
    """Return the operations of `--op`, each once."""
    operations: list[str] = []
    for name in names:
        operations += operations_of(profile) if name == _ALL_OPERATIONS else [name]
    return list(dict.fromkeys(operations))


def program(
    recording: RecordingArgument,
    recorded: RecordedProgram,
    to_layout: Annotated[
        list[str] | None,
        typer.Option(
            help="Other layout, such as 4x1x2 or 4x1x2:node for ranks that fill it by node; repeat for "
            "several.  [default: the other orders of filling --layout]"
        ),
    ] = None,
    to_profile: Annotated[
        list[str] | None, typer.Option(help="Profile of another MPI on this machine; repeat for several.")
    ] = None,
    partitions: Annotated[
        int | None,
        partitions_option("  [default: one per thread, if the arrivals of threads were recorded]"),
    ] = None,
    noise_percent: NoisePercent = None,
    format: Format = FORMAT,
) -> None:
    """Recommend changes of a recorded program and of its settings.

    Row 1 is the advised change, or "as recorded" if none is clearly faster; the others follow by the time of
    the run. Each change is simulated as by `earlybird predict program`, and those that help are simulated
    together. Record with `--events all`.
    """
    noise_share = None if noise_percent is None else noise_percent / 100
    asked = recorded.question(recording, to_layout, to_profile)
    advice = advise_program(replace(asked, partitions=partitions, noise_share=noise_share))
    print_advice(advice, format)
    if len(advice.ranked) == 1 and not (to_layout or to_profile or partitions):
        note("there is no change to compare; add some with --to-layout, --to-profile or --partitions")
    for assumption in advice.extra["assumptions"]:
        note(f"assumed for {assumption}")


def layout(
    context: typer.Context,
    pattern: PatternArgument,
    place: EqualNodes,
    profile: ProfilesOption = None,
    map_by: Annotated[
        str, typer.Option(help="How ranks fill the nodes now, the reference."), MAPPING
    ] = MAPPINGS[0],
    model: ModelOption = None,
    swaps: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=10**8,
            help="Swaps of two ranks to try; 0 tries none.  "
            f"[default: {SWAPS}, or as many as --budget allows]",
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(help="Time for the swaps, such as 60s.  [default: none]"),
        above_zero("60s, or --swaps 0 for no swaps"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the swaps.")] = 1,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write the advised layout: CSV rank,node,socket."
        ),
    ] = None,
    quiet: QuietOption = False,
    format: Format = FORMAT,
) -> None:
    """Recommend where the ranks of an exchange should run.

    Row 1 is the advised layout: the present one, unless another is clearly faster by the predicted time of
    the slowest rank. The others are the orders in which launchers fill nodes; a partition of the exchange
    into nodes by METIS; and the best of these after swaps of ranks, by simulated annealing. The same --swaps
    and --seed give the same layout again, unless --budget or Ctrl-C ends the swaps: then the best layout so
    far is advised, which only -o keeps. `earlybird replay --layout FILE` checks the result.
    """
    place.check()
    limits = Swaps(SWAPS if swaps is None and budget is None else swaps, budget, seed)
    joined = load_profiles(profile)
    if output is not None:
        require_csv_name(output, "-o")
        check_output(output)
    exchange = load_exchange(pattern)
    orders = {order: place.of(exchange, joined, order) for order in (map_by, *MAPPINGS)}
    with shown_progress(quiet, silent_s=1.0) as progress:
        on_swap = partial(_show_swaps, progress, limits)
        advised = advise_layout(exchange, joined, orders, model=model, swaps=limits, on_swap=on_swap)
    advice = advised.advice
    best, ended_by = advice.ranked[0].method, advice.extra.get("swaps_ended_by", COUNT)
    family = joined.context.get("flavour")
    target = family if family in ("mpich", "intel") else "openmpi"
    layout = output or Path("layout.csv")
    export = f"earlybird export {path_argument(layout)} --to {target} --hosts ... -o FILE"
    if output is not None:
        save_layout(advised.layouts[best], output)
    if best not in MAPPINGS:
        how = f"in {output}" if output else f"which `{_again(context, 'layout.csv')}` writes"
        is_same_again = output or ended_by == COUNT
        how = f"{how}; then `{export}` writes a file for mpiexec" if is_same_again else "give -o to keep it"
        advice = _with_action(advice, how)
    print_advice(advice, format)
    if output is not None:
        replay = replay_command([pattern], str(output), profile, joined)
        note(f"wrote {output}, the layout {best}; next: {export} for mpiexec, or, to check it, {replay}")
    elif best in MAPPINGS and best != map_by:
        note(f"-o layout.csv writes the layout {best}")
    if ended_by == INTERRUPT:
        raise typer.Exit(130)


def _show_swaps(progress: ProgressLine, limits: Swaps, done: int, spent_s: float, best_s: float) -> None:
    if progress.is_due():
        left_s = limits.left_s(done, spent_s)
        progress.search(
            spent_s / max(spent_s + left_s, 1e-9),
            f"{done} swaps" if limits.count is None else f"{done} of up to {limits.count} swaps",
            left_s,
            f"slowest rank {format_seconds(best_s)}",
        )


def _with_action(advice: Advice, how: str) -> Advice:
    """Return the advice with how to use its first alternative after the name."""
    first, *others = advice.ranked
    return replace(advice, ranked=(replace(first, action=f"{first.action}, {how}"), *others))


def _again(context: typer.Context, output: str) -> str:
    """Return the command line that was given, with -o."""
    arguments, options = given_arguments(context, ("output", "pattern_out", "format", "json", "all_rows"))
    return command_text([*context.command_path.split(), *arguments, *options, "-o", output])


def partition(
    context: typer.Context,
    *,
    shape: Annotated[
        str, typer.Option("--layout", help="Nodes x sockets x ranks of a socket; a part for each rank.")
    ],
    mesh: MeshOptions,
    profile: ProfilesOption = None,
    model: ModelOption = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Seeds of METIS to try.")] = 8,
    imbalance: Annotated[
        float, typer.Option(min=0.001, max=1, help="By which the largest part may exceed the mean.")
    ] = 0.03,
    seed: Annotated[int, typer.Option(min=0, help="The first seed; also of the generated mesh.")] = 1,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write the advised part of each cell, one per line."
        ),
    ] = None,
    pattern_out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write its exchange: .csv, .npz or .mtx.")
    ] = None,
    format: Format = FORMAT,
) -> None:
    """Recommend a partition of a mesh, by the time in which its ghost cells are exchanged.

    Without MESH, a mesh of tetrahedra is generated. Row 1 is the advised partition: that of `earlybird
    pattern mesh`, unless another is clearly faster by the predicted time of the slowest rank. METIS makes the
    others by bisection and k-way, for fewest cut edges and for least volume, with several seeds and
    imbalances. `earlybird replay` checks the exchange of --pattern-out.
    """
    from earlybird.advise.partition import advise_partition  # imported late: it needs scipy

    joined = load_profiles(profile)
    check_output(output)
    check_pattern_output(pattern_out)
    advised = advise_partition(
        mesh.adjacency(seed), parse_layout(shape), joined, halo_width=mesh.halo_width,
        bytes_per_cell=mesh.bytes_per_cell, model=model, num_seeds=seeds, most_imbalance=imbalance, seed=seed,
    )  # fmt: skip
    advice = advised.advice
    best = advice.ranked[0].method
    if output is not None:
        write_parts(output, advised.parts[best])
    if pattern_out is not None:
        save_pattern(advised.patterns[best], pattern_out)
    if best != advice.baseline:
        again = f"which `{_again(context, 'partition.txt')}` writes"
        advice = _with_action(advice, f"the part of each cell in {output}" if output else again)
    print_advice(advice, format)
    if output is not None:
        note(f"wrote {output}, the partition {best}")
    if pattern_out is not None:
        note(f"wrote {pattern_out}; to check it: {replay_command([pattern_out], shape, profile, joined)}")


def aggregate(
    context: typer.Context,
    pattern: PatternArgument,
    place: PatternPlace,
    profile: ProfilesOption = None,
    model: ModelOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FOLDER",
            help="Write the three exchanges with leaders into it.",
        ),
    ] = None,
    format: Format = FORMAT,
) -> None:
    """Recommend whether messages between nodes should go through leaders of the nodes.

    Row 1 is the advised alternative: sending directly, unless leaders are clearly faster. With leaders there
    are three exchanges: ranks send to the leaders of their node, leaders send one message to each other node,
    and the leaders there send to the ranks. Their predicted times are added; packing is not included.
    `earlybird replay` checks the exchanges that -o writes, those of the fastest number of leaders.
    """
    place.check()
    joined = load_profiles(profile)
    if output is not None and output.exists() and not (output.is_dir() and not any(output.iterdir())):
        raise InputError(f"-o is {output}, which exists already; give a new folder")
    exchange = load_exchange(pattern)
    where = place.of(exchange, joined)
    advised = advise_aggregation(exchange, where, joined, model=model)
    advice = advised.advice
    best = next(ranked.method for ranked in advice.ranked if ranked.method in advised.stages)
    if best == advice.ranked[0].method:
        again = f"whose exchanges `{_again(context, 'aggregated')}` writes"
        advice = _with_action(advice, f"whose exchanges are in {output}" if output else again)
    if output is None:
        print_advice(advice, format)
        note(f"-o FOLDER writes the three exchanges with {best} per node")
        return
    output.mkdir(parents=True, exist_ok=True)
    for name, stage in advised.stages[best].all().items():
        save_pattern(stage, output / f"{name}.csv")
    print_advice(advice, format)
    shown = where.text
    if place.layout is None and not is_shape(shown):
        shown = str(output / "layout.csv")
        save_layout(where, shown)
    stages = [output / f"{name}.csv" for name in ("collect", "between", "distribute")]
    note(
        f"wrote {output}: collect.csv, between.csv and distribute.csv, with {best} per node; check it: "
        f"{replay_command(stages, shown, profile, joined)}"
    )


_PIPELINE = "earlybird advise pipeline --threads 8 --size 64MiB --gamma 100us/MB --profile profile.json"
_COLLECTIVE = "earlybird advise collective --op bcast,allreduce --ranks 8 --profile p.json --config rules"
_PROGRAM = "earlybird advise program rec --profile profile.json --layout 2x1x4 --to-layout 4x1x2"
_LAYOUT = "earlybird advise layout mesh.csv --profile profile.json --layout 4x1x2 -o layout.csv"
_PARTITION = (
    "earlybird advise partition mesh.graph --layout 4x1x2 --bytes-per-cell 400 --profile profile.json "
    "--pattern-out mesh.csv"
)
_AGGREGATE = "earlybird advise aggregate exchange.csv --layout 4x2x16 --profile profile.json -o aggregated"
command = make_group(
    [
        ("pipeline", pipeline, _PIPELINE),
        ("collective", collective, _COLLECTIVE),
        ("program", program, _PROGRAM),
        ("layout", layout, _LAYOUT),
        ("partition", partition, _PARTITION),
        ("aggregate", aggregate, _AGGREGATE),
    ],
    name="advise",
    of_path="program",
    help="Recommend a method, an algorithm or a change of a program, with the setting or command to use it.",
)
