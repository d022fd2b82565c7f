"""Unpack Debian's packages of SimGrid into Earlybird's folder, without root, if the system has none."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from earlybird.data.errors import InputError, WorkError
from earlybird.machine import flavours
from earlybird.toolchain.install import locked, refuse_inside_job

_PACKAGE = "libsimgrid-dev"


def unpack_simgrid(say: Callable[[str], None]) -> None:
    """Unpack SimGrid in the folder in which `find_flavour` looks for it unless it is available.

    apt-get determines the missing packages, downloads them and checks their signatures; nothing is
    installed. Raises InputError if there is no apt, WorkError with its message if it fails.
    """
    folder = flavours.simgrid_folder()
    if shutil.which("smpicc") or folder.exists():
        return
    refuse_inside_job(flavours.SIMULATED)
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise InputError(f"SimGrid is not installed: {flavours.simgrid_remedy()}")
    with locked(f"install-{flavours.SIMULATED}"):
        if folder.exists():
            return
        packages = _missing_packages()
        say(f"unpacking {' '.join(packages)} into {folder}")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent) as work:
            _run(["apt-get", "download", *packages], Path(work))
            root = Path(work) / "root"
            for archive in sorted(Path(work).glob("*.deb")):
                _run(["dpkg-deb", "--extract", archive.name, str(root)], Path(work))
            _relocate(root / "usr" / "bin" / "smpicc", folder)
            os.replace(root, folder)


def _missing_packages() -> list[str]:
    """Return the packages that apt would install for SimGrid."""
    output = _run(["apt-get", "install", "--simulate", "--no-install-recommends", _PACKAGE], Path("/"))
    return re.findall(r"^Inst (\S+)", output, re.MULTILINE)


def _relocate(smpicc: Path, folder: Path) -> None:
    """Make the wrapper look for headers and libraries below `folder`; its compiler stays the system's."""
    text = smpicc.read_text()
    smpicc.write_text(re.sub(r"(-[IL]|\")/usr/(include|lib)", rf"\1{folder}/usr/\2", text))


def _run(command: list[str], folder: Path) -> str:
    """Return the output of `command`; raise WorkError with its last message if it fails."""
    result = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=dict(os.environ) | {"LC_ALL": "C"},
    )
    if result.returncode != 0:
        lines = [line for line in (result.stderr or result.stdout).splitlines() if not line.startswith("W: ")]
        raise WorkError(
            f"SimGrid cannot be unpacked: `{' '.join(command[:2])}` says "
            f"{lines[-1] if lines else f'exit status {result.returncode}'}; `apt-get update` as root may "
            f"help, or install {_PACKAGE}"
        )
    return result.stdout
