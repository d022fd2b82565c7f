"""OpenMP runtimes that report when threads arrive (OMPT): LLVM's libomp and Intel's libiomp5."""

import sys
from pathlib import Path

from earlybird.data.errors import InputError

_NAMES = ("libiomp5.so", "libomp.so.5", "libomp.so")
_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/lib64")
_ADVICE = "install one, such as `pip install intel-openmp` or Debian's libomp5, or give its path"


def find_runtime() -> Path | None:
    """Return the runtime of this Python's environment, as installed by the package intel-openmp, or that of
    the system."""
    llvm = sorted(Path("/usr/lib").glob("llvm-*/lib"), reverse=True)
    folders = [Path(sys.prefix) / "lib", *map(Path, _FOLDERS), *llvm]
    return next((folder / name for folder in folders for name in _NAMES if (folder / name).exists()), None)


def openmp_runtime(text: str) -> Path:
    """Return the runtime that `text` names, a path or "auto"; raise InputError if there is none."""
    if text == "auto":
        found = find_runtime()
        if found is None:
            raise InputError(f"--openmp auto finds no OpenMP runtime that reports arrivals; {_ADVICE}")
        return found
    if not Path(text).is_file():
        raise InputError(f"--openmp is {text!r}, which is not a file; {_ADVICE}")
    return Path(text).resolve()
