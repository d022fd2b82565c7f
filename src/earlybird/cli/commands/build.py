"""`earlybird build`: install MPI flavours if needed and compile the native code for them, or remove both."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.options.command import AS_JSON, make_command
from earlybird.data.units import format_bytes
from earlybird.machine import flavours
from earlybird.machine.home import clearable_home, homes
from earlybird.present.render.data import print_json
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line
from earlybird.toolchain.build import build_native
from earlybird.toolchain.install import install_flavour
from earlybird.toolchain.remove import remove_builds
from earlybird.toolchain.unpack import unpack_simgrid

_DEFAULT = "mpich"
# Of what `--remove` leaves; --json has all.
_MAX_LISTED = 8


def build(
    mpi: Annotated[
        list[str],
        typer.Option(
            help="mpich, openmpi, intel, system (the mpicc on PATH), simgrid or the path of an mpicc; may be "
            "repeated.",
            show_default="mpich",
        ),
    ] = [],  # noqa: B006  typer only reads it
    remove: Annotated[
        bool,
        typer.Option(
            "--remove",
            help="Remove instead what was installed and built for the MPIs of --mpi, or everything without "
            "--mpi. What other users or administrators have built stays.",
        ),
    ] = False,
    json: bool = AS_JSON,
) -> None:
    """Install an MPI flavour if needed and compile the native code for it. A repeated build does nothing."""
    if remove:
        _print_removed(mpi, json)
        return
    for name in mpi:
        flavours.check_name(name)
    names = list(dict.fromkeys(mpi or [_DEFAULT]))
    # In parallel: CMake's probes and pip's downloads leave cores idle.
    with ThreadPoolExecutor(len(names)) as pool:
        prepared = pool.map(_prepare, names)
        if json:
            built = [
                {
                    "name": flavour.name,
                    "version": flavour.version,
                    "mpicc": str(flavour.mpicc),
                    "prefix": str(prefix),
                }
                for flavour, prefix in prepared
            ]
            print_json({"built": built})
            return
        for flavour, prefix in prepared:
            print_line(f"{flavour.name} {flavour.version} is ready: {prefix}")


def _print_removed(names: list[str], json: bool) -> None:
    """Remove the builds, and print their names and the space that this frees."""
    folder = clearable_home()
    others = [str(other) for other in homes() if other != folder and other.is_dir()]
    removed, kept = remove_builds(names)
    freed_bytes = sum(size_bytes for _, size_bytes in removed)
    for cause in dict.fromkeys(kept.values()):
        paths = [str(path) for path in kept if kept[path] == cause]
        more = f" and {len(paths) - _MAX_LISTED} more" if len(paths) > _MAX_LISTED else ""
        note(f"warning: {', '.join(paths[:_MAX_LISTED])}{more} stay, because {cause}")
    if others:
        note(f"earlybird: what is in {', '.join(others)} stays")
    if json:
        items = [{"path": str(path), "size_bytes": size_bytes} for path, size_bytes in removed]
        print_json(
            {"home": str(folder), "removed": items, "kept": [*map(str, kept)], "freed_bytes": freed_bytes}
        )
        return
    for path, size_bytes in removed:
        print_line(f"removed {path}, {format_bytes(size_bytes)}")
    print_line(
        f"{format_bytes(freed_bytes)} freed in {folder}" if removed else f"nothing to remove in {folder}"
    )


def _prepare(name: str) -> tuple[flavours.Flavour, Path]:
    """Return a flavour, installed from its wheel or unpacked if it has to be, and its build folder."""
    if name in flavours.WHEELS:
        install_flavour(name, note)
    if name == flavours.SIMULATED:
        unpack_simgrid(note)
    flavour = flavours.find_flavour(name)
    if flavour.warning is not None:
        note(f"warning: {flavour.warning}")
    return flavour, build_native(flavour, note)


command = make_command(
    build,
    name="build",
    example=[
        "earlybird build --mpi mpich --mpi /opt/openmpi/bin/mpicc",
        "earlybird build --remove --mpi intel",
    ],
)
