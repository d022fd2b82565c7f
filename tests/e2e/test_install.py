"""`pip install .` gives a stranger a working command, and small commands load no large library."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from earlybird.machine.flavours import find_flavour
from earlybird.machine.home import home
from earlybird.toolchain.build import native_prefix

ROOT = Path(__file__).parents[2]
# What takes long to import and most commands can do without.
LARGE = ("scipy", "pandas", "plotly", "pymetis", "pint", "pydantic")


def _state_of_checkout() -> dict[str, tuple[int, int]]:
    """Size and time of what an installation reads, and of everything that lies in the checkout's root."""
    paths = [path for name in ("src", "native") for path in (ROOT / name).rglob("*")]
    paths = [path for path in paths if path.is_file() and "__pycache__" not in path.parts]
    stamps = {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in paths}
    # Python keeps its bytecode of hatch_build.py.
    names = [path.name for path in ROOT.iterdir() if not path.name.startswith((".", "__pycache__"))]
    return stamps | dict.fromkeys(names, (0, 0))


@pytest.fixture
def installed(tmp_path):
    """A virtual environment of a stranger with Earlybird installed in it; returns its bin folder.

    The packages that it depends on are those of this environment: installing them again took most of the
    time. `pip check` says whether they are what Earlybird asks for.
    """
    pytest.importorskip("hatchling", reason="hatchling is not installed (make setup)")
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    own = environment / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (own / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", environment]
    install = ["install", "--quiet", "--no-compile", "--no-deps", "--no-build-isolation", "--no-index"]
    for arguments in ([*install, "--ignore-installed", "."], ["check"]):
        result = subprocess.run([*pip, *arguments], cwd=ROOT, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
    return environment / "bin"


@pytest.mark.mpi
@pytest.mark.thorough
def test_an_installed_earlybird_holds_all_sources_and_measures(any_mpi, tmp_path, request):
    """Its native build is found under a key of all its sources, so those are the ones that were compiled."""
    flavour = find_flavour(any_mpi)
    before = _state_of_checkout()
    bin_folder = request.getfixturevalue("installed")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))
    }
    environment |= {"EARLYBIRD_HOME": str(home()), "PATH": "/usr/local/bin:/usr/bin:/bin"}

    # As the module files find it: a folder without the other programs of the environment.
    link = tmp_path / "bin" / "earlybird"
    link.parent.mkdir()
    link.symlink_to(bin_folder / "earlybird")

    def earlybird(*arguments) -> str:
        result = subprocess.run(
            [link, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    (package,) = bin_folder.parent.glob("lib/*/site-packages/earlybird")
    assert (package / "launch" / "shims" / "launcher.sh").exists()
    cmake = shutil.which("cmake", path=sysconfig.get_path("scripts")) or "cmake"
    configure = [cmake, "-S", package / "_native", "-B", "build", f"-DMPI_C_COMPILER={flavour.mpicc}"]
    subprocess.run(configure, cwd=tmp_path, env=flavour.environment(), check=True, capture_output=True)
    arguments = ("pingpong", "--mpi", any_mpi, "--sizes", "8", "--launches", "1", "--budget", "1s")
    earlybird("measure", *arguments, "-o", "run")
    (sample,) = (tmp_path / "run" / "samples.ndjson").read_text().splitlines()
    assert json.loads(sample)["validated"]
    (launch,) = (tmp_path / "run" / "launches.ndjson").read_text().splitlines()
    assert any(str(native_prefix(flavour)) in word for word in json.loads(launch)["command_line"])
    output = json.loads(earlybird("doctor", "--json"))
    assert output["cores"] >= 1 and output["can"]
    assert _state_of_checkout() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["-c", "import earlybird"],
        ["-c", "import earlybird.cli.commands.record, earlybird.cli.commands.advise"],
        ["--help"],
        ["measure"],
        ["gain", "--help"],
        ["-c", "from earlybird.data.units import parse_bytes, parse_duration\n"
               "parse_bytes('64KiB'), parse_duration('20s')"],
    ],
)  # fmt: skip
def test_small_commands_load_no_large_library(tmp_path, arguments):
    assert _loaded_by(arguments, LARGE, tmp_path) == []


@pytest.mark.parametrize(
    "arguments", [["exec", "--help"], ["cluster", "list"], ["cluster", "run", "--help"]], ids=" ".join
)
def test_what_starts_other_programs_loads_no_numpy(tmp_path, arguments):
    assert _loaded_by(arguments, (*LARGE, "numpy"), tmp_path) == []


def _loaded_by(arguments: list[str], libraries: tuple[str, ...], folder: Path) -> list[str]:
    """Which of `libraries` a command, or a script after -c, has imported when it ends."""
    if arguments[0] == "-c":
        script = arguments[1]
    else:
        script = f"import sys; sys.argv = {['earlybird', *arguments]!r}; from earlybird.cli.main import run\n"
        script += "try: run()\n"
        script += "except SystemExit as end: assert not end.code, end.code"
    script += f"\nimport sys; print(*(name for name in {libraries!r} if name in sys.modules))"
    output = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True
    )
    return output.stdout.splitlines()[-1].split()
