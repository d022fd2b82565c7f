"""The values in Thune et al. 2023: Table I as profiles of the package, the other tables as numbers."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from earlybird.data import labels
from earlybird.data.profile import Profile, load_profile
from earlybird.papers.paper import NOT_MEASURED, Row

# The machines of Table I, in its order, by the names of their profiles.
MACHINES: Mapping[str, str] = {
    "thune-thunderx2": "ThunderX2",
    "thune-kunpeng": "Kunpeng",
    "thune-xeon-gold": "Xeon Gold",
    "thune-epyc-rome": "Epyc Rome",
}
TABLE_I_LEVELS = ("intra_socket", "inter_socket")
# Its columns of bandwidths; the last is that of all cores of a socket.
COUNTS: Mapping[str, int | None] = {
    "BW_SP": 1, "BW_MP(2)": 2, "BW_MP(4)": 4, "BW_MP(8)": 8, "BW_MP(16)": 16, "BW_max": None,
}  # fmt: skip


@dataclass(frozen=True)
class Verification:
    """A verification experiment: the place where it is printed, the step that repeats it here, its
    description, and the printed errors by model."""

    figure: str
    step: str
    what: str
    level: str
    errors: Mapping[str, str]


VERIFICATIONS = (
    Verification("Table II", "table2-intra_socket", "64 processes, 192 messages, 16.5 MB", "intra_socket",
                 {"staircase": "11.5%", "max-rate": "26.0%"}),
    Verification("Table II", "table2-inter_socket", "64 processes, 218 messages, 19.4 MB", "inter_socket",
                 {"staircase": "13.0%", "max-rate": "36.8%"}),
    Verification("Table II", "table2-inter_node", "256 processes, 3958 messages, 461.7 MB", "inter_node",
                 {"staircase": "12.9%", "max-rate": "13.0%"}),
    Verification("figure 5", "figure5-pairs", "48 processes in pairs on and across sockets", "inter_socket",
                 {"staircase": "6.6%"}),
    Verification("figure 5", "figure5-reshuffled", "64 processes, mapped by socket", "inter_socket",
                 {"staircase": "3.6%"}),
)  # fmt: skip


@cache
def machines() -> list[Profile]:
    """Return Table I as profiles."""
    return [load_profile(name) for name in MACHINES]


def latency_us(profile: Profile, level: str) -> str:
    """Return tau of the protocol of large messages; "" without the level."""
    return f"{profile.levels[level].protocols[-1].latency_s * 1e6:.1f}" if level in profile.levels else ""


def bandwidth_gbs(profile: Profile, level: str, count: int | None) -> str:
    """Return BW(N) of large messages in GB/s, of the largest N for None; "" if it has none."""
    if level not in profile.levels:
        return ""
    rates = profile.levels[level].protocols[-1].bandwidth_bytes_per_s
    rate = rates.get(max(rates) if count is None else count)
    return "" if rate is None else f"{rate / 1e9:.1f}"


@dataclass(frozen=True)
class Realistic:
    """An experiment of Tables III and IV."""

    table: str
    cpu: str
    ranks: int
    layout: str
    what: str
    error: str

    def row(self, here: str = "", note: str = "", mpi: str = "") -> Row:
        """Return the row with the error of an exchange here; without one, with what it would take."""
        nodes = labels.counted(int(self.layout.split("x")[0]), "node")
        needs = f"{NOT_MEASURED}: needs {self.ranks} cores on {nodes}, for {self.ranks} parts of a mesh"
        quantity = f"{self.cpu}, {self.ranks} processes, {self.what}"
        return Row(f"Table {self.table}", quantity, self.error, here, note if here else needs, mpi)


@cache
def realistic() -> list[Realistic]:
    """Return the experiments of Tables III and IV."""
    with (Path(__file__).parent / "tables.csv").open(newline="") as lines:
        return [
            Realistic(
                row["table"], row["cpu"], int(row["ranks"]), row["layout"], _statistics(row), row["error"]
            )
            for row in csv.DictReader(lines)
        ]


def _statistics(row: Mapping[str, str]) -> str:
    volumes = f", {row['most_mb']} MB to {row['fewest_kb']} KB per process" if row["most_mb"] else ""
    return (
        f"{row['messages']} messages, at most {row['most_messages']} per process, {row['volume_mb']} MB"
        f"{volumes}, {row['on_percent']} % on sockets, {row['off_percent']} % across, "
        f"{row['inter_percent']} % between nodes"
    )
