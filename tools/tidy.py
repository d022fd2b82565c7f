"""Runs clang-tidy on libearlybird, the recorder, the kernels with their harness, and the models' loops."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from earlybird.data.errors import InputError
from tools.configured import ROOT, configure

MODELS = ROOT / "src" / "earlybird" / "models" / "compiled"
_CHECKED = re.compile(r"native/(?:harness|kernels|partitioned|interpose|recorder)/")


def checked_sources(folder: Path) -> list[str]:
    """The sources to check that `folder` compiles, each once."""
    commands = json.loads((folder / "compile_commands.json").read_text())
    return sorted({command["file"] for command in commands if _CHECKED.search(command["file"])})


def tidy(options: Sequence[str | Path], source: str) -> str:
    """What clang-tidy finds in one file; empty if nothing."""
    command = [Path(sys.executable).parent / "clang-tidy", "--quiet", source, *options]
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=ROOT)
    return result.stdout + result.stderr if result.returncode else ""


def main() -> int:
    try:
        folder = configure(ROOT / "build" / "tidy", "mpich")
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        native = pool.map(lambda source: tidy(["-p", folder], source), checked_sources(folder))
        models = pool.map(
            lambda source: tidy(["--", "-std=gnu11", "-D_GNU_SOURCE"], str(source)),
            sorted(MODELS.glob("*.c")),
        )
        found = "".join([*native, *models])
    print(found, end="")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
