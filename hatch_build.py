"""Compiles the loops of the exchange models when pip builds Earlybird or installs it in place."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src/earlybird/models/compiled")
LIBRARY = FOLDER / "libearlybird_models.so"
# The same numbers whatever the processor: nothing that only some have, and no fused operations.
FLAGS = ("-std=c11", "-O3", "-ffp-contract=off", "-fPIC", "-shared", "-Wall", "-Wextra")


class CompileModels(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and make the wheel one of this platform that contains the library."""
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        library, sources = root / LIBRARY, sorted((root / FOLDER).glob("*.[ch]"))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].append(str(LIBRARY))
        newest_s = max(path.stat().st_mtime for path in [*sources, Path(__file__)])
        if library.exists() and library.stat().st_mtime >= newest_s:
            return
        temporary = library.with_name(f".{library.name}.{os.getpid()}")
        command = [
            *_compiler(),
            *FLAGS,
            *[path for path in sources if path.suffix == ".c"],
            "-o",
            temporary,
            "-lm",
        ]
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
