"""Renews the lock files, the versions and hashes of everything that `make` installs: python -m tools.lock.

`requirements/setup.txt` is for `make setup`, a file per extra for the other targets, and the package has a
file per MPI, for `earlybird build`. uv finds one set of versions for every Python that pyproject.toml
supports; it is installed into an environment that is removed again.
"""

import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

from earlybird.machine.flavours import WHEELS
from earlybird.toolchain.install import wheel_requirements

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "requirements"
SETUP = FOLDER / "setup.txt"
UV = "uv==0.13.9"
# Part of what `make setup` installs.
OF_SETUP = "dev"
# What hatchling asks for in addition when it builds an installation in place.
EDITABLE = "editables>=0.5"


def lock_inputs() -> dict[Path, list[str]]:
    """Lock file -> the requirements that it fulfils; the first one restricts those of the extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    build = [*project["build-system"]["requires"], EDITABLE]
    setup = [*build, *project["project"]["dependencies"], *extras[OF_SETUP]]
    others = {FOLDER / f"{name}.txt": extra for name, extra in extras.items() if name != OF_SETUP}
    return {SETUP: setup} | others | {wheel_requirements(name): list(pins) for name, pins in WHEELS.items()}


def main() -> int:
    python = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", UV]
        subprocess.run(pip, check=True)
        for path, requirements in lock_inputs().items():
            print(path.relative_to(ROOT))
            path.parent.mkdir(exist_ok=True)
            command = [
                f"{folder}/bin/uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes",
                "--python-version", python.removeprefix(">="), "--no-config", "--no-annotate",
                "--custom-compile-command", "make lock",
                "--output-file", str(path), "-",
            ]  # fmt: skip
            if path.parent != FOLDER:
                command.append("--no-deps")  # an MPI is complete
            elif path != SETUP:
                command += ["--constraint", str(SETUP)]
            path.unlink(missing_ok=True)  # otherwise uv keeps the versions of before
            subprocess.run(command, input="\n".join(requirements), text=True, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
