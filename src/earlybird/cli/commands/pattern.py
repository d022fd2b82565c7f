"""`earlybird pattern`: creates the pattern of an exchange from a mesh, a halo, a recording, a trace,
Open MPI's monitoring or at random, or converts one."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from earlybird.cli.options.command import FORMAT, make_group
from earlybird.cli.options.mesh import BytesPerCell, HaloWidth, MeshOptions
from earlybird.cli.options.outputs import check_output, check_pattern_output, write_parts
from earlybird.cli.options.values import SIZE, OneOf, Parsed, as_written
from earlybird.data import memory
from earlybird.data.errors import InputError
from earlybird.data.pattern import Pattern, load_without_diagonal, save_pattern
from earlybird.data.units import parse_triple
from earlybird.patterns.halo import RANK_ORDERS
from earlybird.patterns.random_exchange import DISTRIBUTIONS
from earlybird.present.render.data import Format, print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line

if TYPE_CHECKING:
    from earlybird.data.recording import PairTotals

Output = Annotated[
    Path, typer.Option("-o", "--output", help="Pattern to write: .csv, .npz or .mtx.", metavar="FILE")
]
Combined = Annotated[bool, typer.Option("--combined", help="One message for each pair of ranks.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same pattern.")]


def mesh(
    *,
    output: Output,
    parts: Annotated[int, typer.Option(help="Number of parts, one for each rank.")],
    mesh: MeshOptions,
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
    check_output(partition_out)
    require_ranks(parts, "the number of parts")
    adjacency = mesh.adjacency(seed)
    part = partition_cells(adjacency, parts, seed)
    pattern = ghost_exchange(adjacency, part, halo_width=mesh.halo_width, bytes_per_cell=mesh.bytes_per_cell)
    if partition_out is not None:
        write_parts(partition_out, part)
    mesh_facts = {"cells": adjacency.shape[0], "edge_cut": edge_cut(adjacency, part)}
    _finish(pattern, output, parts, mesh_facts, format)


def halo(
    output: Output,
    grid: Annotated[
        tuple[int, int, int],
        typer.Option(help="Ranks along each axis.", metavar="PXxPYxPZ"),
        Parsed(parse_triple),
    ],
    cells: Annotated[
        tuple[int, int, int],
        typer.Option(help="Cells of each rank.", metavar="NXxNYxNZ"),
        Parsed(parse_triple),
    ] = as_written("64x64x64"),
    halo_width: HaloWidth = 1,
    bytes_per_cell: BytesPerCell = as_written("8"),
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
    pattern = halo_exchange(
        grid,
        cells,
        halo_width=halo_width,
        bytes_per_cell=bytes_per_cell,
        neighbours=neighbours,
        periodic=periodic,
        rank_order=rank_order,
        available_bytes=memory.available_memory_bytes(),
    )
    _finish(pattern, output, math.prod(grid), {}, format)


def pairs(
    output: Output,
    sizes: Annotated[str, typer.Option(help="Size of the messages of each pair, such as 2KiB,1KiB,512.")],
    format: Format = FORMAT,
) -> None:
    """Create pairs of ranks that send each other a message of one size per pair.

    With 2s, s and s/2 it is the experiment of figure 3 of Thune et al. 2023.
    """
    from earlybird.data.units import parse_bytes
    from earlybird.patterns.pairs import pairs_exchange

    check_pattern_output(output)
    listed = [parse_bytes(size.strip(), "--sizes") for size in sizes.split(",")]
    _finish(pairs_exchange(listed), output, 2 * len(listed), {}, format)


def random(
    output: Output,
    ranks: Annotated[int, typer.Option(help="Ranks that may send and receive.")],
    messages: Annotated[int, typer.Option(help="Number of messages.")],
    min_size: Annotated[int, typer.Option(help="Smallest message."), SIZE] = as_written("8"),
    max_size: Annotated[int, typer.Option(help="Largest message."), SIZE] = as_written("1MiB"),
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
        min_size_bytes=min_size,
        max_size_bytes=max_size,
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
    mean_size: Annotated[int, typer.Option(help="Mean message size."), SIZE] = as_written("4KiB"),
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
        mean_size_bytes=mean_size,
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
    combined: Combined = False,
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
    from earlybird.data.recording import load_counted
    from earlybird.patterns.recorded import check_messages, exchange_of_all, heaviest_phase, phase_of
    from earlybird.patterns.recorded_epochs import exchanges_of_phase, which_epoch

    check_pattern_output(output)
    if whole and (phase is not None or epoch is not None):
        part = "--epoch" if phase is None else "--phase"
        raise InputError(f"--all is the whole run and {part} a part of it; give one of them")
    loaded = load_counted(source)
    facts: dict[str, Any] = {}
    if whole:
        made = exchange_of_all(loaded, combined=combined, one_sided=one_sided)
    else:
        chosen = heaviest_phase(loaded, one_sided=one_sided) if phase is None else phase_of(loaded, phase)
        check_messages(loaded, chosen, one_sided=one_sided)
        exchanges = exchanges_of_phase(loaded, chosen, combined=combined, one_sided=one_sided)
        number = 0 if epoch is None else exchanges.number_of(epoch - 1)
        made = exchanges.exchange(number)
        note(which_epoch(chosen.number, exchanges, number, epoch))
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


def monitoring(
    sources: Annotated[
        list[Path],
        typer.Argument(help="PREFIX of the files PREFIX.RANK.prof, or such files.", metavar="PREFIX..."),
    ],
    output: Output,
    combined: Combined = False,
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

    check_pattern_output(output)
    loaded = load_monitoring(sources, internal=internal)
    for remark in loaded.remarks():
        note(f"warning: {remark}")
    _finish_totals(loaded.totals, loaded.num_ranks, combined, output, format)


def otf2(
    source: Annotated[
        Path, typer.Argument(help="Anchor file of a trace, or the folder with traces.otf2.", metavar="TRACE")
    ],
    output: Output,
    combined: Combined = False,
    format: Format = FORMAT,
) -> None:
    """Write all point-to-point messages of an OTF2 trace, such as one of Score-P, as one exchange.

    Sizes are exact. This needs the Python package otf2: `pip install otf2`.
    """
    from earlybird.interop.otf2_trace import load_trace

    check_pattern_output(output)
    loaded = load_trace(source)
    _finish_totals(loaded.totals, loaded.num_ranks, combined, output, format)


def _finish_totals(totals: "PairTotals", num_ranks: int, combined: bool, output: Path, format: str) -> None:
    """Write the exchange of these sums of messages."""
    from earlybird.patterns.recorded import exchange_of

    pattern, left_out = exchange_of(totals, combined=combined)
    if left_out:
        note(f"left out {left_out} messages from a rank to itself")
    _finish(pattern, output, num_ranks, {}, format)


def _finish(pattern: Pattern, output: Path, num_ranks: int, facts: dict[str, Any], format: str) -> None:
    """Write the pattern, and print its summary after the `facts`."""
    from earlybird.patterns.summary import summary_lines, summary_of

    save_pattern(pattern, output)
    summary = {"file": str(output)} | facts | summary_of(pattern, num_ranks)
    if not print_data(format, summary, [summary]):
        for line in summary_lines(summary):
            print_line(line)


command = make_group(
    [
        ("mesh", mesh, "earlybird pattern mesh --parts 8 --cells 100000 --bytes-per-cell 8 -o mesh.csv"),
        ("halo", halo, "earlybird pattern halo --grid 2x2x2 --cells 64x64x64 --neighbours 26 -o halo.csv"),
        (
            "random",
            random,
            "earlybird pattern random --ranks 8 --messages 100 --max-size 64KiB -o random.csv",
        ),
        ("pairs", pairs, "earlybird pattern pairs --sizes 2KiB,1KiB,512 -o pairs.csv"),
        ("near", near, "earlybird pattern near --ranks 1024 --per-rank 26 --mean-size 4KiB -o near.npz"),
        ("recording", recording, "earlybird pattern recording rec -o exchange.csv"),
        ("monitoring", monitoring, "earlybird pattern monitoring prof/app -o exchange.csv"),
        ("otf2", otf2, "earlybird pattern otf2 scorep-app/traces.otf2 -o exchange.csv"),
        ("convert", convert, "earlybird pattern convert messages.mtx -o messages.csv"),
    ],
    name="pattern",
    long_tables=False,
    help="Create or convert the pattern of an exchange: which rank sends how many bytes to which.",
)
