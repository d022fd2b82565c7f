"""Options shared by several commands: types of single options, and groups of options as dataclasses."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from earlybird.cli.options.values import DURATION, FRACTION, SIZE, OneOf
from earlybird.data.errors import InputError
from earlybird.data.exchange_models import COMBINE, MIXED, MODELS, SHARES, SHARING
from earlybird.data.levels import LEVELS, MAPPINGS
from earlybird.data.statistics import SHOWN
from earlybird.measure.launch_counts import DEFAULT_LAUNCHES, QUICK_LAUNCHES

if TYPE_CHECKING:
    from earlybird.data.profile import Profile

SCHEDULERS = ("slurm",)
_FLAVOURS = "mpich, openmpi, intel, system or the path of an mpicc"
_BUILT = "[default: the first built]"
LAYOUT_HELP = "NODESxSOCKETSxRANKS (ranks per socket), such as 1x1x4, or a CSV file."

MpiOption = Annotated[str | None, typer.Option(help=f"{_FLAVOURS}.  {_BUILT}")]
MpisOption = Annotated[
    list[str] | None, typer.Option(help=f"{_FLAVOURS}; repeat it to compare several.  {_BUILT}")
]
ThreadsOption = Annotated[int, typer.Option(help="Threads per rank; each has a core if there are enough.")]
RunOption = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="Run folder to create.  [default: named by the time]"),
]
PrintScriptOption = Annotated[
    str | None,
    typer.Option(help="Print a batch script for this scheduler and do not measure."),
    OneOf(*SCHEDULERS),
]
PatternArgument = Annotated[
    Path,
    typer.Argument(metavar="PATTERN", help="The messages: CSV src,dst,bytes, .npz or Matrix Market."),
]
SeedOption = Annotated[int, typer.Option(help="Seed of the order of launches and points, and of noise.")]
LaunchesOption = Annotated[
    int | None,
    typer.Option(
        help=f"Launches of every point.  [default: {DEFAULT_LAUNCHES}, with --quick {QUICK_LAUNCHES}]"
    ),
]
MinEffectOption = Annotated[float, typer.Option(help="A smaller difference counts as none."), FRACTION]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print no progress on stderr.")]
ProfilesOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Profile written by fit, or thune-epyc-rome and others of that paper; repeat to combine levels."
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(help="See docs/models.md.  [default: the model that errs least]"),
    OneOf(*MODELS),
]
MAPPING = OneOf(*MAPPINGS)
MapByOption = Annotated[str, typer.Option(help="How ranks fill the layout."), MAPPING]
LayoutMapByOption = Annotated[
    str | None, typer.Option(help=f"How ranks fill --layout.  [default: {MAPPINGS[0]}]"), MAPPING
]
ShareOption = Annotated[
    str | None,
    typer.Option(help=f"--model {SHARING.name}: what gets an equal share.  [default: message]"),
    OneOf(*SHARES),
]
StatisticOption = Annotated[
    str,
    typer.Option(
        help="Of measured times: the median over iterations, then launches; or the mean over the iterations "
        "of all launches, with its 90 % interval by Student's t, as in Gillis et al. 2023."
    ),
    OneOf(*SHOWN),
]
CombineOption = Annotated[
    str | None,
    typer.Option(
        help="How a rank's times inside its node and between nodes combine: their sum, or overlap, where the "
        "longer transfer counts.  [default: sum]"
    ),
    OneOf(*COMBINE),
]
MixedOption = Annotated[
    str | None,
    typer.Option(
        help="How messages inside and outside a socket complete; see docs/models.md.  [default: per-level]"
    ),
    OneOf(*MIXED),
]


@dataclass(frozen=True)
class PlaceOptions:
    """The options that determine where ranks run, and what starts them."""

    launcher: Annotated[
        str,
        typer.Option(
            help="local (mpiexec), srun (Slurm), cluster:NAME (virtual nodes), simgrid:2x2x64 (SimGrid) or "
            "synthetic:PROFILE (no MPI: times computed from a profile)."
        ),
    ] = "local"
    hosts: Annotated[str | None, typer.Option(help="Hosts for mpiexec: node1,node2 or a file.")] = None
    agent: Annotated[
        str | None,
        typer.Option(help="Program that starts processes on --hosts, called like ssh.  [default: ssh]"),
    ] = None
    srun: Annotated[
        str | None,
        typer.Option(
            metavar="ARGUMENTS",
            help="Further arguments for --launcher srun, such as '--mpi=pmix --network=single_node_vni'.",
        ),
    ] = None


@dataclass(frozen=True)
class LimitOptions:
    """The options that end and continue a run."""

    time_limit: Annotated[
        float | None, typer.Option(help="Time limit of a launch.  [default: 1h]"), DURATION
    ] = None
    stall_limit: Annotated[
        float | None,
        typer.Option(
            help="End a launch that completes no point for this long, time in Slurm's queue included.  "
            "[default: 60s]"
        ),
        DURATION,
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in -o with the options it was started with.")
    ] = False
    quiet: QuietOption = False

    def limits(self) -> dict[str, Any]:
        """Return the limits that are given, by their names in the effort of a run."""
        given = {"time_limit_s": self.time_limit, "stall_limit_s": self.stall_limit}
        return {name: limit_s for name, limit_s in given.items() if limit_s is not None}


@dataclass(frozen=True)
class SessionOptions(LimitOptions):
    """The options that start, end and continue a run."""

    print_script: PrintScriptOption = None


@dataclass(frozen=True)
class BufferOptions:
    """A buffer that threads fill, and the profile with which to predict its transfer."""

    size: Annotated[int, typer.Option(help="Size of the buffer, such as 64MiB."), SIZE]
    profile: ProfilesOption = None
    threads: Annotated[int, typer.Option(min=1, help="Threads that fill the buffer.")] = 1
    level: Annotated[
        str | None,
        typer.Option(help="[default: the farthest that the profile has]"),
        OneOf(*LEVELS),
    ] = None

    def size_bytes(self, partitions: int) -> int:
        """Return the bytes of the buffer; raise InputError if the threads or partitions do not divide it."""
        if partitions < 1 or partitions % self.threads:
            raise InputError(
                f"--partitions is {partitions} for all {self.threads} threads together; give a multiple of "
                f"{self.threads}"
            )
        if self.size < 1 or self.size % partitions:
            raise InputError(
                f"--size is {self.size} bytes, which is not divisible into {partitions} partitions; give a "
                f"multiple of {partitions}"
            )
        return self.size


@dataclass(frozen=True)
class CollectiveOptions:
    """A collective operation, the placement of its ranks, and the profile with which to predict it."""

    op: Annotated[str, typer.Option(help="The operation, such as bcast or reduce.")]
    ranks: Annotated[int | None, typer.Option(help="Number of ranks.  [default: all of the layout]")] = None
    profile: ProfilesOption = None
    map_by: Annotated[
        str | None,
        typer.Option(help="How ranks fill the layout.  [default: as measured]"),
        MAPPING,
    ] = None
    layout: Annotated[
        str | None,
        typer.Option(
            help=f"{LAYOUT_HELP}  [default: the nodes measured, and more of them if --ranks needs them]"
        ),
    ] = None
    root: Annotated[int, typer.Option(help="The root rank.")] = 0


def check_size(size_bytes: int, operations: Sequence[str]) -> None:
    """Raise InputError if there are only barriers and they have a size, or another operation has none."""
    others = [operation for operation in operations if operation != "barrier"]
    if not others and size_bytes:
        raise InputError(f"--size is {size_bytes} bytes for barrier; give 0, because a barrier has no data")
    if others and not size_bytes:
        raise InputError(f"--size is 0 bytes for {others[0]}; give bytes, such as --size 64KiB")


def load_profiles(names: list[str] | None) -> "Profile":
    """Load the profiles of `--profile` and merge them."""
    from earlybird.data.profile import load_profile
    from earlybird.predict import merge_profiles

    if not names:
        raise InputError("no profile is given; add --profile, a file written by `earlybird fit`")
    return merge_profiles([load_profile(name) for name in names])


def check_map_by(map_by: str | None, layout: str | None) -> None:
    """Raise InputError for --map-by without a layout that it fills."""
    if map_by is not None and layout is None:
        raise InputError(
            f"--map-by {map_by} is how ranks fill --layout, which is missing; give both, or omit it"
        )
