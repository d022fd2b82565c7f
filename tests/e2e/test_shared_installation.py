"""What an administrator has installed and built serves a user who may write nothing of it."""

import json
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

import earlybird
from earlybird.machine.flavours import find_flavour
from earlybird.machine.home import MPIS, home
from earlybird.toolchain.build import native_prefix

pytestmark = pytest.mark.mpi

NOBODY = 65534
# Reads and starts everything, because Python and the checkout may be root's alone, and writes nothing.
SECOND_USER = [
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=+dac_read_search",
    "--ambient-caps=+dac_read_search",
]  # fmt: skip


@pytest.fixture
def open_folder():
    """A folder that other users may enter, as they may not enter those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture
def shared(any_mpi, open_folder):
    """An environment of root's with Earlybird, in which an MPI is installed and built; and a second user's
    `earlybird` in a folder of that user's."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can become another user, with setpriv")
    if not all(folder.stat().st_mode & stat.S_IXOTH for folder in (home(), *home().parents)):
        pytest.skip(f"other users may not enter {home()}")
    prefix, user = open_folder / "prefix", open_folder / "user"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    packages = prefix / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    sources = Path(earlybird.__file__).parents[1]
    (packages / "packages.pth").write_text(f"{sources}\n{sysconfig.get_path('purelib')}\n")
    user.mkdir()
    os.chown(user, NOBODY, NOBODY)
    names = ("EARLYBIRD_HOME", "XDG_DATA_HOME", "VIRTUAL_ENV", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    environment |= {"HOME": str(user), "TMPDIR": str(user)}

    def run(*command, as_user: bool = True) -> subprocess.CompletedProcess:
        python = [*(SECOND_USER if as_user else []), prefix / "bin" / "python", *command]
        result = subprocess.run(
            python, cwd=user, env=environment, capture_output=True, text=True, timeout=120
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result

    folder = prefix / "share" / "earlybird"
    folder.mkdir(parents=True)
    (folder / MPIS).symlink_to(home() / MPIS)
    where = (
        "from earlybird.machine.flavours import find_flavour as f; from earlybird.toolchain import build as b"
    )
    build = Path(run("-c", f"{where}; print(b.own_prefix(f({any_mpi!r})))", as_user=False).stdout.strip())
    assert build.is_relative_to(folder)
    build.parent.mkdir()
    build.symlink_to(native_prefix(find_flavour(any_mpi)))
    return run, folder, user


def test_a_user_measures_with_what_an_administrator_has_built_and_removes_nothing_of_it(shared, any_mpi):
    run, folder, user = shared

    def contents() -> dict[Path, int]:
        return {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}

    before = contents()
    found = json.loads(run("-m", "earlybird", "doctor", "--json").stdout)
    own = user / ".local" / "share" / "earlybird"
    assert found["homes"] == [str(own), str(folder)]
    (flavour,) = [each for each in found["flavours"] if each["name"] == any_mpi]
    assert flavour["built"] and Path(flavour["mpicc"]).is_relative_to(folder)

    ready = run("-m", "earlybird", "build", "--mpi", any_mpi)
    assert str(folder) in ready.stdout and not ready.stderr
    arguments = ("--mpi", any_mpi, "--sizes", "8", "--launches", "1", "--budget", "1s", "-o", "run")
    run("-m", "earlybird", "measure", "pingpong", *arguments)
    assert json.loads((user / "run" / "samples.ndjson").read_text())["validated"]
    run("-m", "earlybird", "exec", "--mpi", any_mpi, "--", "mpiexec", "-n", "1", "true")
    assert (own / "launchers").is_dir()

    removed = run("-m", "earlybird", "build", "--remove")
    assert f"what is in {folder} stays" in removed.stderr and not own.exists()
    assert contents() == before
