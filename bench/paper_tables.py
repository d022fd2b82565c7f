"""Tables III and IV of Thune et al. 2023 with exchanges of similar statistics, predicted from its Table I.

The paper's meshes and times are not published as numbers, so its errors cannot be checked here. METIS
divides the Norne grid, each cell refined into 2 x 2 x 2 cells, or into 4 x 4 x 4 for Epyc Rome, where the
paper takes a mesh ten times larger. A cell has the same bytes in all rows of a mesh: the geometric mean of
the paper's volume over our number of cells sent. Ranks are placed by socket for Table III and by core for
Table IV, as the shares of 512 ranks of Epyc Rome suggest, which are in both. About four minutes on an idle
core; without the data it does nothing.
"""

import argparse
import csv
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.commands import Usage, say, watched
from earlybird.data.layout import Layout, parse_layout
from earlybird.data.levels import LEVELS
from earlybird.data.pattern import Pattern, load_pattern
from earlybird.data.profile import Level, Profile, Protocol
from earlybird.data.tables import load_thune_table
from earlybird.data.units import format_bytes, format_seconds
from earlybird.papers import thune
from earlybird.patterns.near_exchange import near_exchange
from earlybird.patterns.traffic import Traffic, traffic
from earlybird.predict import Predictor
from earlybird.present.render.terminal import print_rows

ROWS = Path(thune.__file__).parent / "tables.csv"
DATA = Path(__file__).parents[2] / "shared" / "data"
GRID, DIMS, TABLE_I = "norne_actnum.prop", "46x112x22", "thune_table1.csv"
REFINED, REFINED_LARGE, LARGE_CPU = 2, 4, "Epyc Rome 7742"
MAP_BY = {"III": "socket", "IV": "core"}
# `earlybird pattern near` at the density of the largest exchange, see docs/patterns.md.
NEAR = {"messages_per_rank": 335, "mean_size_bytes": 3418, "unevenness": 7.5}
# Table I has no level between nodes. Assumed: the nominal HDR 100 of section IV-D, which two processes
# saturate (III-D), half of it for one, and the latency across sockets.
LINK_BYTES_PER_S = 12.5e9
BOTH = ("staircase", "fair", "queue")


@dataclass(frozen=True)
class PaperRow:
    """A row of Table III, or a column of Table IV; what a table does not give is None."""

    table: str
    cpu: str
    ranks: int
    layout: str
    messages: int
    most_messages: int
    volume_mb: float
    most_mb: float | None
    fewest_kb: float | None
    on_percent: float
    off_percent: float
    inter_percent: float
    error: float

    @property
    def refined(self) -> int:
        return REFINED_LARGE if self.cpu == LARGE_CPU else REFINED

    @property
    def place(self) -> Layout:
        return parse_layout(self.layout, MAP_BY[self.table])


def main(arguments: Sequence[str] = ()) -> int:
    """Print both tables, and what the partitions took."""
    parser = argparse.ArgumentParser(prog="python -m bench paper-tables", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help=f"folder of {GRID} and {TABLE_I}")
    data = parser.parse_args(list(arguments)).data
    if missing := [name for name in (GRID, TABLE_I) if not (data / name).exists()]:
        say(f"paper-tables: skipped, {data} does not have {' and '.join(missing)}; see --data")
        return 0
    rows, profiles = paper_rows(), load_thune_table(data / TABLE_I)
    made: dict[tuple[int, int], tuple[Pattern, Usage]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for key in sorted({(row.refined, row.ranks) for row in rows}):
            made[key] = partitioned(data / GRID, DIMS, *key, Path(folder))
            say(f"refined {key[0]}, {key[1]} ranks: partitioned in {format_seconds(made[key][1].elapsed_s)}")
    patterns = {key: pattern for key, (pattern, _) in made.items()}
    cell_bytes = {refined: bytes_per_cell(rows, patterns, refined) for refined in (REFINED, REFINED_LARGE)}
    print("ours next to the paper's; bytes of a cell in the grid refined", end=" ")
    print(", ".join(f"{refined}: {size}" for refined, size in cell_bytes.items()))
    sized = {key: with_cell_bytes(pattern, cell_bytes[key[0]]) for key, pattern in patterns.items()}
    _print_table_iii([row for row in rows if row.table == "III"], sized, profiles)
    _print_table_iv([row for row in rows if row.table == "IV"], sized, profiles[LARGE_CPU])
    _print_partitions({key: usage for key, (_, usage) in made.items()}, patterns)
    return 0


def paper_rows() -> list[PaperRow]:
    """The numbers of Tables III and IV. Both give the nodes; ranks are spread evenly over two sockets."""
    kinds = {item.name: item.type for item in fields(PaperRow)}
    with ROWS.open(newline="") as lines:
        return [
            PaperRow(**{
                name: kinds[name](text) if kinds[name] in (str, int) else float(text) if text else None
                for name, text in row.items()
            })
            for row in csv.DictReader(lines)
        ]  # fmt: skip


def partitioned(mask: Path, dims: str, refined: int, ranks: int, folder: Path) -> tuple[Pattern, Usage]:
    """The exchange of a refined grid, one byte for each cell sent, by `earlybird pattern mesh`."""
    path = folder / f"{refined}-{ranks}.npz"
    usage = watched(
        "pattern", "mesh", mask, "--dims", dims, "--refine", refined, "--parts", ranks,
        "--bytes-per-cell", 1, "-o", path,
    )  # fmt: skip
    return load_pattern(path), usage


def bytes_per_cell(rows: Iterable[PaperRow], patterns: dict[tuple[int, int], Pattern], refined: int) -> int:
    """Doubles of a cell in bytes, for which the volumes of a mesh are the paper's in the geometric mean."""
    volume_bytes = {row.ranks: 1e6 * row.volume_mb for row in rows if row.refined == refined}
    cells = [patterns[refined, ranks].total_bytes for ranks in volume_bytes]
    return max(
        8, 8 * round(float(np.exp(np.mean(np.log(np.array(list(volume_bytes.values())) / cells)))) / 8)
    )


def with_cell_bytes(pattern: Pattern, size_bytes: int) -> Pattern:
    """From one byte for each cell to `size_bytes`."""
    return Pattern(pattern.src, pattern.dst, pattern.bytes * size_bytes)


def inside_nodes(pattern: Pattern, layout: Layout) -> Pattern:
    """The messages that Table I has levels for."""
    inside = layout.level(pattern.src, pattern.dst) != LEVELS.index("inter_node")
    return Pattern(pattern.src[inside], pattern.dst[inside], pattern.bytes[inside])


def with_link(profile: Profile) -> Profile:
    """Table I's profile and the assumed level between nodes."""
    (across,) = profile.level("inter_socket").protocols
    bandwidth = {1: LINK_BYTES_PER_S / 2, 2: LINK_BYTES_PER_S}
    link = Protocol(latency_s=across.latency_s, bandwidth_bytes_per_s=bandwidth)
    return replace(profile, levels=profile.levels | {"inter_node": Level("inter_node", (link,))})


def _print_table_iii(
    rows: Iterable[PaperRow], patterns: dict[tuple[int, int], Pattern], profiles: dict[str, Profile]
) -> None:
    print(
        "\nTable III: messages, the most of a rank, MB, percent on a socket, across sockets, between\n"
        "nodes; staircase for the messages inside nodes; the paper's error is that of its own exchanges"
    )
    printed = []
    for row in rows:
        pattern, layout = patterns[row.refined, row.ranks], row.place
        inside = Predictor(inside_nodes(pattern, layout), layout).predict(profiles[row.cpu])
        printed.append([
            row.cpu, row.ranks, row.layout, *_statistics(traffic(pattern, layout), row),
            *_slowest_and_mean(inside.time_s), f"{row.error:.3f}",
        ])  # fmt: skip
    print_rows(
        ["CPU", "ranks", "layout", *_STATISTICS, "slowest", "mean", "paper's error"], printed, left=["CPU"]
    )


def _print_table_iv(
    rows: Sequence[PaperRow], patterns: dict[tuple[int, int], Pattern], profile: Profile
) -> None:
    largest = max(rows, key=lambda row: row.ranks)
    near = near_exchange(largest.ranks, **NEAR)
    cases = [("mesh", row, patterns[row.refined, row.ranks]) for row in rows] + [("near", largest, near)]
    print("\nTable IV, Epyc Rome; also the largest and the smallest volume of a rank, in MB and kB")
    print_rows(
        ["exchange", "ranks", "layout", *_STATISTICS, "most MB", "paper", "fewest kB", "paper"],
        [_statistics_with_volumes(*case) for case in cases], left=["exchange"],
    )  # fmt: skip
    print(
        "\nTable IV: slowest rank and mean, predicted for messages inside nodes, and for all with a link\n"
        f"assumed: {LINK_BYTES_PER_S / 1e9:g} GB/s, half of it for one process, the latency across sockets"
    )
    heads = [head for name in ("inside nodes", *BOTH) for head in (name, "mean")]
    print_rows(
        ["exchange", "ranks", "layout", *heads, "paper's error"],
        [_predicted(*case, profile) for case in cases], left=["exchange"],
    )  # fmt: skip


def _statistics_with_volumes(name: str, row: PaperRow, pattern: Pattern) -> list[Any]:
    found = traffic(pattern, row.place)
    received = found.rank_bytes[found.rank_bytes > 0]
    volumes = (received.max() / 1e6, row.most_mb, received.min() / 1e3, row.fewest_kb)
    return [name, row.ranks, row.layout, *_statistics(found, row), *(f"{value:.2f}" for value in volumes)]


def _predicted(name: str, row: PaperRow, pattern: Pattern, profile: Profile) -> list[Any]:
    say(f"Table IV: {name}, {row.ranks} ranks")
    inside = Predictor(inside_nodes(pattern, row.place), row.place).predict(profile)
    predictor, full = Predictor(pattern, row.place), with_link(profile)
    times_s = [inside.time_s, *(predictor.predict(full, model).time_s for model in BOTH)]
    columns = [text for each in times_s for text in _slowest_and_mean(each)]
    return [name, row.ranks, row.layout, *columns, f"{row.error:.3f}"]


_STATISTICS = ("messages", "paper", "most", "paper", "MB", "paper", "on/off/inter %", "paper")


def _statistics(found: Traffic, row: PaperRow) -> list[Any]:
    total = sum(found.bytes.values())
    ours = [100 * found.bytes[level] / total for level in LEVELS]
    theirs = (row.on_percent, row.off_percent, row.inter_percent)
    return [
        sum(found.messages.values()), row.messages, int(found.rank_messages.max()), row.most_messages,
        f"{total / 1e6:.0f}", f"{row.volume_mb:.0f}",
        *("/".join(f"{share:.0f}" for share in shares) for shares in (ours, theirs)),
    ]  # fmt: skip


def _slowest_and_mean(times_s: np.ndarray) -> tuple[str, str]:
    return format_seconds(float(times_s.max())), format_seconds(float(times_s.mean()))


def _print_partitions(usages: dict[tuple[int, int], Usage], patterns: dict[tuple[int, int], Pattern]) -> None:
    print("\n`earlybird pattern mesh ... --refine N --parts RANKS`, with reading and writing files")
    print_rows(
        ["refined", "ranks", "cells sent", "elapsed", "processor time", "memory"],
        [
            [*key, patterns[key].total_bytes, format_seconds(usage.elapsed_s),
             format_seconds(usage.processor_s), format_bytes(usage.memory_bytes)]
            for key, usage in usages.items()
        ],
    )  # fmt: skip
