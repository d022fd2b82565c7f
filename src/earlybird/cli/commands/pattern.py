"""`earlybird pattern`: creates the pattern of an exchange from a mesh, a halo, a recording, a trace,
Open MPI's monitoring or at random, or converts one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from earlybird.cli.options.command import FORMAT, make_group
from earlybird.cli.options.mesh import (
    BytesPerCell,
    CellsOption,
    DimsOption,
    HaloWidth,
    MeshArgument,
    RefineOption,
    adjacency_of,
    check_output,
    check_pattern_output,
    three_sides,
)
from earlybird.cli.options.values import OneOf
from earlybird.data import files, memory, units
from earlybird.data.errors import InputError
from earlybird.data.pattern import Pattern, load_without_diagonal, save_pattern
from earlybird.patterns.halo import RANK_ORDERS
from earlybird.patterns.random_exchange import DISTRIBUTIONS
from earlybird.present.render.data import Format, print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line

if TYPE_CHECKING:
    from earlybird.patterns.recorded_epochs import RecordedExchanges

Output = Annotated[
    Path, typer.Option("-o", "--output", help="Pattern to write: .csv, .npz or .mtx.", metavar="FILE")
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same pattern.")]


def mesh(
    *,
    mesh: MeshArgument = None,
    output: Output,
    parts: Annotated[int, typer.Option(help="Number of parts, one for each rank.")],
    cells: CellsOption = None,
    dims: DimsOption = None,
    refine: RefineOption = None,
    halo_width: HaloWidth = 1,
    bytes_per_cell: BytesPerCell = "8",
    seed: Seed = 1,
    partition_out: Annotated[
        Path | None, typer.Option(help="Also write the part of each cell, one per line.", metavar="FILE")
    ] = None,
    format: Format = FORMAT,
) -> None:
    """Send ghost cells between the parts of a mesh.

    METIS partitions the mesh. Without MESH, a mesh of tetrahedra in an irregular, perforated body is
    generated.
    """
    from earlybird.patterns.checks import require_ranks
    from earlybird.patterns.ghost import ghost_exchange
    from earlybird.patterns.partition import edge_cut, partition_cells

    # Before the mesh is made or read, which may take minutes.
    check_pattern_output(output)
    if partition_out is not None:
        check_output(partition_out)
    require_ranks(parts, "the number of parts")
    size_bytes = units.parse_bytes(bytes_per_cell, "--bytes-per-cell")
    adjacency = adjacency_of(mesh, cells, dims, refine, seed)
    part = partition_cells(adjacency, parts, seed)
    pattern = ghost_exchange(adjacency, part, halo_width=halo_width, bytes_per_cell=size_bytes)
    if partition_out is not None:
        files.write_text(partition_out, "".join(f"{number}\n" for number in part.tolist()))
    mesh_facts = {"cells": adjacency.shape[0], "edge_cut": edge_cut(adjacency, part)}
    _finish(pattern, output, parts, mesh_facts, format)


def halo(
    output: Output,
    grid: Annotated[str, typer.Option(help="Ranks along each axis.", metavar="PXxPYxPZ")],
    cells: Annotated[str, typer.Option(help="Cells of each rank.", metavar="NXxNYxNZ")] = "64x64x64",
    halo_width: HaloWidth = 1,
    bytes_per_cell: BytesPerCell = "8",
    neighbours: Annotated[int, typer.Option(help="6 (faces) or 26 (with edges and corners).")] = 6,
    periodic: Annotated[bool, typer.Option("--periodic", help="Opposite sides are neighbours.")] = False,
    rank_order: Annotated[
        str,
        typer.Option(help="How ranks are numbered; MPI_Cart_create does it z-fastest."),
        OneOf(*RANK_ORDERS),
    ] = RANK_ORDERS[0],
    format: Format = FORMAT,
) -> None:
    """Create the halo exchange of a 3-D Cartesian grid of ranks."""
    from earlybird.patterns.halo import halo_exchange

    check_pattern_output(output)
    ranks = three_sides(grid, "--grid")
    pattern = halo_exchange(
        ranks,
        three_sides(cells, "--cells"),
        halo_width=halo_width,
        bytes_per_cell=units.parse_bytes(bytes_per_cell, "--bytes-per-cell"),
        neighbours=neighbours,
        periodic=periodic,
        rank_order=rank_order,
        available_bytes=memory.available_memory_bytes(),
    )
    _finish(pattern, output, ranks[0] * ranks[1] * ranks[2], {}, format)


def pairs(
    output: Output,
    sizes: Annotated[str, typer.Option(help="Size of the messages of each pair, such as 2KiB,1KiB,512.")],
    format: Format = FORMAT,
) -> None:
    """Create pairs of ranks that send each other a message of one size per pair.

    With 2s, s and s/2 it is the experiment of figure 3 of Thune et al. 2023.
    """
    from earlybird.patterns.pairs import pairs_exchange

    check_pattern_output(output)
    listed = [units.parse_bytes(size.strip(), "--sizes") for size in sizes.split(",")]
    _finish(pairs_exchange(listed), output, 2 * len(listed), {}, format)


def random(
    output: Output,
    ranks: Annotated[int, typer.Option(help="Ranks that may send and receive.")],
    messages: Annotated[int, typer.Option(help="Number of messages.")],
    min_size: Annotated[str, typer.Option(help="Smallest message.")] = "8",
    max_size: Annotated[str, typer.Option(help="Largest message.")] = "1MiB",
    distribution: Annotated[
        str, typer.Option(help="Distribution of the sizes."), OneOf(*DISTRIBUTIONS)
    ] = DISTRIBUTIONS[0],
    seed: Seed = 1,
    format: Format = FORMAT,
) -> None:
    """Create messages between random pairs of ranks."""
    from earlybird.patterns.random_exchange import random_exchange

    check_pattern_output(output)
    pattern = random_exchange(
        ranks,
        messages,
        min_size_bytes=units.parse_bytes(min_size, "--min-size"),
        max_size_bytes=units.parse_bytes(max_size, "--max-size"),
        distribution=distribution,
        seed=seed,
        available_bytes=memory.available_memory_bytes(),
    )
    _finish(pattern, output, ranks, {}, format)


def near(
    output: Output,
    ranks: Annotated[int, typer.Option(help="Number of ranks.")],
    per_rank: Annotated[
        float | None,
        typer.Option(help="Messages that a rank sends, mean.  [default: 26, or one to each other rank]"),
    ] = None,
    mean_size: Annotated[str, typer.Option(help="Mean message size.")] = "4KiB",
    unevenness: Annotated[
        float, typer.Option(help="About how many times the mean the rank with most messages sends, at least.")
    ] = 2,
    seed: Seed = 1,
    format: Format = FORMAT,
) -> None:
    """Create messages between ranks that are near each other in space, at any density.

    Ranks are random points of a cube, denser towards one corner, and numbered along a space-filling curve.
    Each sends one message to every rank within a distance. Sizes are log-normal.
    """
    from earlybird.patterns.near_exchange import near_exchange

    check_pattern_output(output)
    pattern = near_exchange(
        ranks,
        min(26, max(ranks - 1, 1)) if per_rank is None else per_rank,
        mean_size_bytes=units.parse_bytes(mean_size, "--mean-size"),
        unevenness=unevenness,
        seed=seed,
        available_bytes=memory.available_memory_bytes(),
    )
    _finish(pattern, output, ranks, {}, format)


def convert(
    source: Annotated[Path, typer.Argument(help="Pattern to read: .csv, .npz or .mtx.", metavar="IN")],
    output: Output,
    format: Format = FORMAT,
) -> None:
    """Write a pattern in another format.

    In Matrix Market an entry is a message: the row sends that many bytes to the column; ranks count from 1.
    Entries on the diagonal need no communication and are dropped.
    """
    check_pattern_output(output)
    pattern, dropped = load_without_diagonal(source)
    if dropped:
        note(
            f"dropped {dropped} entr{'y' if dropped == 1 else 'ies'} on the diagonal of {source}: messages "
            "from a rank to itself"
        )
    _finish(pattern, output, pattern.num_ranks_named, {}, format)


def recording(
    source: Annotated[Path, typer.Argument(help="Folder that `earlybird record` wrote.", metavar="REC")],
    output: Output,
    phase: Annotated[
        int | None,
        typer.Option(help="Number of a phase in `earlybird show REC`.  [default: that with most bytes]"),
    ] = None,
    epoch: Annotated[
        int | None,
        typer.Option(
            help="Number of an epoch of the phase, from 1.  [default: one with the most frequent exchange]"
        ),
    ] = None,
    whole: Annotated[bool, typer.Option("--all", help="All messages of the run, not one epoch.")] = False,
    combined: Annotated[bool, typer.Option("--combined", help="One message for each pair of ranks.")] = False,
    one_sided: Annotated[
        bool, typer.Option("--one-sided", help="Include what MPI_Put, MPI_Get and the like moved.")
    ] = False,
    format: Format = FORMAT,
) -> None:
    """Write one epoch of a recorded program as an exchange.

    It is what all ranks sent in the same epoch of a phase. Blocks of MPI_Alltoallv, MPI_Alltoallw and
    neighbourhood collectives are messages, too. Messages of one pair between two powers of two get equal
    sizes. With --one-sided data goes from the process whose memory
    is read to the one whose memory is written.
    """
    from earlybird.data.recording import load_recording
    from earlybird.patterns.recorded import check_messages, exchange_of_all, heaviest_phase, phase_of
    from earlybird.patterns.recorded_epochs import exchanges_of_phase

    check_pattern_output(output)
    if whole and (phase is not None or epoch is not None):
        part = "--epoch" if phase is None else "--phase"
        raise InputError(f"--all is the whole run and {part} a part of it; give one of them")
    loaded = load_recording(source)
    facts: dict[str, Any] = {}
    if whole:
        made = exchange_of_all(loaded, combined=combined, one_sided=one_sided)
    else:
        chosen = heaviest_phase(loaded, one_sided=one_sided) if phase is None else phase_of(loaded, phase)
        check_messages(loaded, chosen, one_sided=one_sided)
        exchanges = exchanges_of_phase(loaded, chosen, combined=combined, one_sided=one_sided)
        number = 0 if epoch is None else exchanges.number_of(epoch - 1)
        made = exchanges.exchange(number)
        note(_which_epoch(chosen.number, exchanges, number, epoch))
        facts = {"phase": chosen.number, "epochs": exchanges.epochs, "distinct_exchanges": len(exchanges)}
    if not one_sided and (moves := int(loaded.one_sided().messages.sum())):
        note(f"left out {moves} one-sided transfers; give --one-sided to include them")
    if made.num_unequal:
        note(
            f"the sizes of the messages of {made.num_unequal} pairs differ between epochs; means are written"
        )
    if made.left_out:
        note(f"left out {made.left_out} messages from a rank to itself")
    _finish(made.pattern, output, loaded.size, facts, format)


def _which_epoch(phase: int, exchanges: "RecordedExchanges", number: int, epoch: int | None) -> str:
    """Say which epoch is written, and how many others have the same messages."""
    epochs, kept = exchanges.epochs, len(exchanges.sampled)
    if len(exchanges) == 1:
        least, most = exchanges.least_epochs, exchanges.most_epochs
        count = f"there were {epochs}" if least == most else f"ranks had {least} to {most}"
        return f"one epoch of phase {phase}, of which {count}"
    known = f"{epochs} epochs" if kept == epochs else f"the {kept} of {epochs} epochs that were kept"
    is_most_frequent = number == 0 and exchanges.counts[0] > 1
    which = f"epoch {exchanges.epoch_of(number) + 1 if epoch is None else epoch}"
    return (
        f"{known} of phase {phase} have {len(exchanges)} different exchanges; this is that of {which}, "
        f"{'the most frequent one, ' if is_most_frequent else ''}which {exchanges.counts[number]} have; give "
        "--epoch for another one"
    )


def monitoring(
    sources: Annotated[
        list[Path],
        typer.Argument(help="PREFIX of the files PREFIX.RANK.prof, or such files.", metavar="PREFIX..."),
    ],
    output: Output,
    combined: Annotated[bool, typer.Option("--combined", help="One message for each pair of ranks.")] = False,
    internal: Annotated[
        bool, typer.Option("--internal", help="Also the messages that Open MPI sent for collectives.")
    ] = False,
    format: Format = FORMAT,
) -> None:
    """Write the messages that Open MPI's monitoring counted as one exchange.

    The files are those of `mpirun --mca pml_monitoring_enable 2 --mca pml_monitoring_enable_output 3 --mca
    pml_monitoring_filename PREFIX`. Counts and bytes of each pair are exact; messages of one pair between
    two powers of two get equal sizes. Several prefixes, such as those of phases, are added up.
    """
    from earlybird.interop.monitoring import load_monitoring
    from earlybird.patterns.recorded import exchange_of

    check_pattern_output(output)
    loaded = load_monitoring(sources, internal=internal)
    pattern, left_out = exchange_of(loaded.totals, combined=combined)
    for sentence in loaded.remarks():
        note(f"warning: {sentence}")
    if left_out:
        note(f"left out {left_out} messages from a rank to itself")
    _finish(pattern, output, loaded.num_ranks, {}, format)


def otf2(
    source: Annotated[
        Path, typer.Argument(help="Anchor file of a trace, or the folder with traces.otf2.", metavar="TRACE")
    ],
    output: Output,
    combined: Annotated[bool, typer.Option("--combined", help="One message for each pair of ranks.")] = False,
    format: Format = FORMAT,
) -> None:
    """Write all point-to-point messages of an OTF2 trace, such as one of Score-P, as one exchange.

    Sizes are exact. This needs the Python package otf2: `pip install otf2`.
    """
    from earlybird.interop.otf2_trace import load_trace
    from earlybird.patterns.recorded import exchange_of

    check_pattern_output(output)
    loaded = load_trace(source)
    pattern, left_out = exchange_of(loaded.totals, combined=combined)
    if left_out:
        note(f"left out {left_out} messages from a rank to itself")
    _finish(pattern, output, loaded.num_ranks, {}, format)


def _finish(pattern: Pattern, output: Path, num_ranks: int, facts: dict[str, Any], format: Format) -> None:
    save_pattern(pattern, output)
    summary = {"file": str(output)} | facts | summary_of(pattern, num_ranks)
    if not print_data(format, summary, [summary]):
        print_summary(summary)


def summary_of(pattern: Pattern, num_ranks: int) -> dict[str, Any]:
    """Numbers and sizes of the messages of a pattern."""
    import numpy as np

    sizes = pattern.bytes if pattern.num_messages else np.zeros(1, dtype=np.int64)
    sent = np.bincount(pattern.src, minlength=num_ranks)
    received = np.bincount(pattern.dst, minlength=num_ranks)
    return {
        "ranks": num_ranks,
        "messages": pattern.num_messages,
        "total_bytes": pattern.total_bytes,
        "smallest_bytes": int(sizes.min()),
        "median_bytes": float(np.median(sizes)),
        "largest_bytes": int(sizes.max()),
        "fewest_sent_by_a_rank": int(sent.min(initial=pattern.num_messages)),
        "most_sent_by_a_rank": int(sent.max(initial=0)),
        "fewest_received_by_a_rank": int(received.min(initial=pattern.num_messages)),
        "most_received_by_a_rank": int(received.max(initial=0)),
        "pattern_sha256": pattern.sha256(),
    }


def print_summary(summary: dict[str, Any]) -> None:
    """Print what `summary_of` found, in lines."""
    smallest, median, largest, total = (
        units.format_bytes(summary[key])
        for key in ("smallest_bytes", "median_bytes", "largest_bytes", "total_bytes")
    )
    if "cells" in summary:
        print_line(f"mesh      {summary['cells']} cells, {summary['edge_cut']} pairs of neighbours separated")
    print_line(
        f"pattern   {summary['file']}: {summary['messages']} messages, {summary['ranks']} ranks, {total}"
    )
    print_line(f"a message {smallest} to {largest}, median {median}")
    print_line(
        f"a rank    sends {summary['fewest_sent_by_a_rank']} to {summary['most_sent_by_a_rank']} messages, "
        f"receives {summary['fewest_received_by_a_rank']} to {summary['most_received_by_a_rank']}"
    )


_MESH = "earlybird pattern mesh --parts 8 --cells 100000 --bytes-per-cell 8 -o mesh.csv"
_HALO = "earlybird pattern halo --grid 2x2x2 --cells 64x64x64 --neighbours 26 -o halo.csv"
_PAIRS = "earlybird pattern pairs --sizes 2KiB,1KiB,512 -o pairs.csv"
_RANDOM = "earlybird pattern random --ranks 8 --messages 100 --max-size 64KiB -o random.csv"
_NEAR = "earlybird pattern near --ranks 1024 --per-rank 26 --mean-size 4KiB -o near.npz"
_RECORDING = "earlybird pattern recording rec -o exchange.csv"
_MONITORING = "earlybird pattern monitoring prof/app -o exchange.csv"
_OTF2 = "earlybird pattern otf2 scorep-app/traces.otf2 -o exchange.csv"
_CONVERT = "earlybird pattern convert messages.mtx -o messages.csv"
command = make_group(
    [
        ("mesh", mesh, _MESH),
        ("halo", halo, _HALO),
        ("random", random, _RANDOM),
        ("pairs", pairs, _PAIRS),
        ("near", near, _NEAR),
        ("recording", recording, _RECORDING),
        ("monitoring", monitoring, _MONITORING),
        ("otf2", otf2, _OTF2),
        ("convert", convert, _CONVERT),
    ],
    name="pattern",
    long_tables=False,
    help="Create or convert the pattern of an exchange: which rank sends how many bytes to which.",
)
