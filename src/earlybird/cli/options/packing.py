"""Options of how messages are packed, of commands that predict or replay exchanges."""

from dataclasses import dataclass
from typing import Annotated

import typer

from earlybird.cli.options.values import OneOf
from earlybird.data.errors import InputError
from earlybird.data.methods import CACHES, PACKINGS
from earlybird.measure.replays import REPLAY_PACKERS
from earlybird.predict.packing import PACKERS, Packing

_BY = "Of --packing: by MPI_Pack and MPI_Unpack, by a loop over the data{}.  [default: mpi]"


@dataclass(frozen=True)
class PackingOptions:
    """The options that say how messages are packed and unpacked."""

    packing: Annotated[
        str | None,
        typer.Option(
            help="Messages are packed and unpacked, of doubles that are contiguous, strided or indexed; see "
            "docs/packing.md.  [default: not packed]"
        ),
        OneOf(*PACKINGS),
    ] = None
    packing_cache: Annotated[
        str | None,
        typer.Option(help=f"Of --packing: the caches of the prediction.  [default: {CACHES[0]}]"),
        OneOf(*CACHES),
    ] = None
    packing_by: Annotated[str | None, typer.Option(help=_BY.format("")), OneOf(*PACKERS)] = None

    def read(self) -> Packing | None:
        """Return how messages are packed; raise InputError for details of packing without --packing."""
        if self.packing is not None:
            return Packing(
                self.packing, self.packing_cache or CACHES[0], self.packing_by or next(iter(PACKERS))
            )
        for name, value in (("--packing-cache", self.packing_cache), ("--packing-by", self.packing_by)):
            if value is not None:
                raise InputError(
                    f"{name} {value} is given without --packing; add it, such as --packing strided"
                )
        return None


@dataclass(frozen=True)
class ReplayPackingOptions(PackingOptions):
    """The same of messages that are sent, which the MPI may pack itself."""

    packing_by: Annotated[
        str | None,
        typer.Option(help=_BY.format(", or by the MPI, which sends a datatype")),
        OneOf(*REPLAY_PACKERS),
    ] = None
