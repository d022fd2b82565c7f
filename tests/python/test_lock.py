"""The lock files fit pyproject.toml and the MPIs that are installed, whatever was released since."""

import re
from collections import defaultdict
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from earlybird.machine.flavours import WHEELS
from earlybird.toolchain.install import wheel_requirements
from tools.lock import FOLDER, SETUP, lock_inputs

MACHINES = [
    {"python_version": python, "python_full_version": f"{python}.1", "platform_machine": machine}
    for python in ("3.11", "3.12", "3.13", "3.14")
    for machine in ("x86_64", "aarch64")
]


def locked(path: Path) -> dict[str, list[Requirement]]:
    """Name of a package -> its pins; every one has a hash."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    pins = defaultdict(list)
    for line in text.splitlines():
        requirement, *hashes = re.split(r"\s+--hash=", line.strip())
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for digest in hashes), line
        pin = Requirement(requirement)
        assert [specifier.operator for specifier in pin.specifier] == ["=="], line
        pins[canonicalize_name(pin.name)].append(pin)
    return pins


def version(pins: list[Requirement], machine: dict[str, str]) -> str | None:
    """The version that one machine gets; never two."""
    environment = machine | {"sys_platform": "linux", "extra": ""}
    versions = [
        next(iter(pin.specifier)).version
        for pin in pins
        if pin.marker is None or pin.marker.evaluate(environment)
    ]
    assert len(versions) <= 1, pins
    return versions[0] if versions else None


@pytest.mark.parametrize("path", list(lock_inputs()), ids=lambda path: path.name)
def test_every_requirement_is_fulfilled_on_every_machine(path):
    pins = locked(path)
    for requirement in map(Requirement, lock_inputs()[path]):
        for machine in MACHINES:
            if requirement.marker is None or requirement.marker.evaluate(machine):
                got = version(pins[canonicalize_name(requirement.name)], machine)
                assert got is not None and requirement.specifier.contains(got), (requirement, machine, got)


def test_every_lock_file_is_of_an_extra():
    assert {path for path in lock_inputs() if path.parent == FOLDER} == set(FOLDER.iterdir())


def test_extras_change_nothing_that_the_setup_has_installed():
    setup = locked(SETUP)
    for path in FOLDER.iterdir():
        for name, pins in locked(path).items():
            for machine in MACHINES:
                versions = {version(pins, machine), version(setup.get(name, []), machine)} - {None}
                assert len(versions) <= 1, (path.name, name, versions)


@pytest.mark.parametrize("name", WHEELS)
def test_an_mpi_is_installed_in_the_version_that_its_folder_is_named_after(name):
    pins = [str(pin) for pins in locked(wheel_requirements(name)).values() for pin in pins]
    assert sorted(pins) == sorted(WHEELS[name])
