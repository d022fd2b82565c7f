"""Install an MPI flavour's wheels from PyPI, each flavour into a separate virtual environment."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path

from earlybird.data import locks
from earlybird.data.errors import InputError, WorkError, cause_of
from earlybird.data.shell_commands import quoted
from earlybird.machine import flavours
from earlybird.machine.home import LOCKS, home

# Set by batch systems in every process of a job.
JOB_VARIABLES = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID")


def install_flavour(name: str, say: Callable[[str], None]) -> None:
    """Install the wheels of flavour `name` unless installed; raise WorkError with pip's last message if it
    fails.

    Two flavours in one environment would overwrite each other's mpicc, and `pip install --target` loses the
    lib folder: hence an environment each.
    """
    if flavours.is_installed(name):
        _link_modules(flavours.wheel_folder(name))  # also of what an earlier version installed
        return
    refuse_inside_job(name)
    with locked(f"install-{name}"):
        if flavours.is_installed(name):
            return
        folder = flavours.wheel_folder(name)
        say(f"installing {' '.join(flavours.WHEELS[name])} into {folder}")
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", "--without-pip", str(folder)], f"cannot make {folder}")
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(folder / "bin" / "python"),
            "--disable-pip-version-check",
        ]
        _run(
            [
                *pip,
                "install",
                "--quiet",
                "--no-deps",
                "--require-hashes",
                "--requirement",
                str(wheel_requirements(name)),
            ],
            f"cannot install {name} from PyPI",
            _remedy,
        )
        _link_modules(folder)
        (folder / flavours.INSTALLED).write_text("\n".join(flavours.WHEELS[name]) + "\n")


def wheel_requirements(name: str) -> Path:
    """Return the file with the versions of WHEELS and the hashes of these wheels, which `make lock`
    writes."""
    return Path(__file__).parent / "wheels" / f"{name}.txt"


def _link_modules(folder: Path) -> None:
    """Let Intel MPI's mpif90 find its modules for gfortran.

    It recognises its present layout by a debug library, which the wheels lack, and so looks for
    include/gfortran, as in an earlier layout, instead of include/mpi/gfortran.
    """
    for name in ("gfortran", "ilp64"):
        link = folder / "include" / name
        if (folder / "include" / "mpi" / name).is_dir() and not os.path.lexists(link):
            # A shared installation may belong to another user.
            with suppress(OSError):
                link.symlink_to(Path("mpi", name))


def inside_job() -> bool:
    """Return whether this process belongs to a batch job, that is, runs on a compute node."""
    return any(name in os.environ for name in JOB_VARIABLES)


def refuse_inside_job(flavour_name: str) -> None:
    """Raise InputError on a compute node.

    These never download or build: many would at once, and most have no network or compiler.
    """
    if inside_job():
        raise InputError(
            "compute nodes neither install nor build; run "
            f"`earlybird build --mpi {flavour_name}` on the login node"
        )


@contextmanager
def locked(name: str):
    """Let only one process at a time do the work `name`; the lock ends with the process."""
    with locks.held(lambda: _open_lock(home() / LOCKS / name), waits=True):
        yield


def _open_lock(path: Path) -> int:
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except FileNotFoundError:
            continue  # `build --remove` has just removed the folder
        except OSError as error:
            raise InputError(
                f"cannot write in {home()}: {cause_of(error)}; set EARLYBIRD_HOME to a folder you may "
                "write to"
            ) from error


def _remedy(output: str) -> str:
    """Return the remedy for an error for which pip has printed `output`."""
    other = "or give the mpicc of another MPI with --mpi /path/to/mpicc"
    if "hash" in output.lower():
        return (
            "the wheel is not the one that Earlybird knows by its hash, so do not use it; check with "
            f"`pip config list` which index pip takes it from, {other}"
        )
    return f"check the network and that `{quoted(Path(sys.executable).name)} -m pip` works, {other}"


def _run(command: list[str], sentence: str, remedy: Callable[[str], str] | None = None) -> None:
    """Run `command`; raise WorkError with `sentence`, its last line and the `remedy` for its output if it
    fails."""
    result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        output = result.stderr or result.stdout
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        cause = lines[-1] if lines else f"exit status {result.returncode}"
        raise WorkError(f"{sentence}: {cause}" + (f"; {remedy(output)}" if remedy else ""))
