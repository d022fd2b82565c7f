"""Copy libearlybird, built for one MPI, to a prefix for other projects: the work of `make install`."""

import shutil
import sys
from pathlib import Path

from earlybird.data.errors import EarlybirdError, InputError, WorkError, cause_of
from earlybird.data.plain_text import plain_line
from earlybird.machine.flavours import Flavour, find_flavour
from earlybird.toolchain.build import ABI_LIBRARY, LIBRARY, name_of_build, native_prefix, require_library

# The library's files of a native build; the rest are Earlybird's kernels.
_PARTS = (
    f"lib/{LIBRARY}*",
    f"lib/{ABI_LIBRARY}*",
    "lib/pkgconfig/earlybird.pc",
    "lib/cmake/Earlybird/*.cmake",
    "include/earlybird.h",
    "include/earlybird_f08.f90",
)


def export_library(flavour: Flavour, prefix: Path) -> list[Path]:
    """Copy library, header, pkg-config file and CMake package to `prefix`; return the files there."""
    require_library(flavour)
    built = native_prefix(flavour)
    _refuse_other_mpi(built, prefix)
    copied = []
    for source in (path for part in _PARTS for path in sorted(built.glob(part))):
        target = prefix / source.relative_to(built)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            # Not onto the old one: programs that run now keep it.
            target.unlink(missing_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
        except OSError as error:
            raise WorkError(
                f"cannot write {target}: {cause_of(error)}; check PREFIX and permissions"
            ) from error
        copied.append(target)
    return copied


def _refuse_other_mpi(built: Path, prefix: Path) -> None:
    """Raise InputError if `prefix` has a library for another MPI, of which some files would stay."""
    there, ours = (name_of_build(folder) for folder in (prefix, built))
    if there is not None and there != ours:
        raise InputError(f"{prefix} has libearlybird for {there}, not for {ours}; give another PREFIX")


def main(flavour: str, prefix: str) -> int:
    """Export the library to a prefix; return the exit status."""
    try:
        for path in export_library(find_flavour(flavour), Path(prefix).absolute()):
            print(plain_line(str(path)))
    except EarlybirdError as error:
        print(f"earlybird: {plain_line(str(error))}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
