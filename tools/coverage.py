"""Shows which lines of Python, C and C++ the tests run: python -m tools.coverage [PYTEST-ARGUMENT]...

The native code is compiled for MPICH with --coverage, in a home folder of its own. Not counted: what
processes run that are killed later, and the copies of single C files that tests compile.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from earlybird.machine.flavours import find_flavour
from earlybird.machine.home import home
from earlybird.toolchain import build
from tools.configured import ROOT, configure, environment_of

FOLDER = ROOT / "build" / "coverage"
NATIVE_FLAGS = "--coverage -fprofile-update=atomic"


def build_native() -> None:
    """Install a native build with counters in the folder that EARLYBIRD_HOME names."""
    flavour = find_flavour("mpich")
    prefix = build.own_prefix(flavour)
    options = [
        f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_BUILD_TYPE=Debug",
        f"-DCMAKE_C_FLAGS={NATIVE_FLAGS}", f"-DCMAKE_CXX_FLAGS={NATIVE_FLAGS}",
    ]  # fmt: skip
    folder = configure(FOLDER / "native", "mpich", *options)
    environment = environment_of("mpich")
    cmake = shutil.which("cmake", path=environment["PATH"]) or "cmake"
    command = [cmake, "--build", folder, "--target", "install"]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    # Otherwise `earlybird build` in a test would replace it.
    (prefix / "compiled_with.txt").write_text(build._compiled_with(flavour))


def main(arguments: list[str]) -> int:
    own_home = FOLDER / "home"
    own_home.mkdir(parents=True, exist_ok=True)
    if not (own_home / "mpi").exists():
        (own_home / "mpi").symlink_to(home() / "mpi")
    os.environ["EARLYBIRD_HOME"] = str(own_home)
    build_native()
    for counters in (FOLDER / "native").rglob("*.gcda"):
        counters.unlink()
    tests = [sys.executable, "-m", "pytest", "--cov", f"--cov-report=html:{FOLDER / 'python'}", *arguments]
    status = subprocess.run(tests, cwd=ROOT).returncode
    report = [
        Path(sys.executable).parent / "gcovr", "--root", ROOT / "native", FOLDER / "native",
        "--exclude", ".*/tests/", "--txt", "--html-nested", FOLDER / "native.html",
    ]  # fmt: skip
    subprocess.run(report, check=True)
    print(f"in detail: {FOLDER / 'python' / 'index.html'} and {FOLDER / 'native.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
