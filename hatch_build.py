"""Compiles the loops of the exchange models when pip builds Earlybird or installs it in place."""

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src/earlybird/models/compiled")
LIBRARY = "libearlybird_models.so"
# The same numbers whatever the processor: nothing that only some have, and no fused operations.
# GNU: sched_getaffinity and madvise are no part of ISO C.
FLAGS = (
    "-std=gnu11",
    "-D_GNU_SOURCE",
    "-O3",
    "-ffp-contract=off",
    "-fPIC",
    "-shared",
    "-pthread",
    "-Wall",
    "-Wextra",
)


class CompileModels(BuildHookInterface):
    """Compiles next to the sources for an installation in place, else outside of them: they may be read-only,
    or shared with a machine of another kind."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and make the wheel one of this platform that contains the library."""
        if self.target_name != "wheel":
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        sources = Path(self.root, FOLDER)
        if version == "editable":
            _compile(sources, sources / LIBRARY)
            return
        self._folder = tempfile.TemporaryDirectory(prefix="earlybird-models-")  # removed by `finalize`
        library = Path(self._folder.name, LIBRARY)
        _compile(sources, library)
        build_data["force_include"][str(library)] = f"earlybird/models/compiled/{LIBRARY}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the folder of the library, which the wheel contains now."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def _compile(sources: Path, library: Path) -> None:
    """Make the shared `library` unless it is newer than its sources; it appears whole or not at all."""
    newest_s = max(path.stat().st_mtime for path in [*sources.glob("*.[ch]"), Path(__file__)])
    if library.exists() and library.stat().st_mtime >= newest_s:
        return
    temporary = library.with_name(f".{library.name}.{os.getpid()}")
    command = [*_compiler(), *FLAGS, *sorted(sources.glob("*.c")), "-o", temporary, "-lm"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{shlex.join(map(str, command))} failed:\n{result.stderr}")
    os.replace(temporary, library)


def _compiler() -> list[str]:
    """That of CC, else the first C compiler that is there."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    found = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if found is None:
        raise SystemExit("Earlybird needs a C compiler: install gcc or clang, or name one with CC")
    return [found]
