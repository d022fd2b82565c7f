"""A command is found where a shell would find it."""

import shutil

import pytest

from earlybird.machine.commands import find_command


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, mode in (("first/app", 0o644), ("second/app", 0o755), ("own", 0o755)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(mode)
    (tmp_path / "first" / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("path", ["first:second", "first::second", "", "/nowhere"])
@pytest.mark.parametrize("name", ["app", "own", "folder", "./own", "first/app", "absent", ""])
def test_a_command_is_found_as_by_the_standard_library(folder, name, path):
    expected = shutil.which(name, path=path)
    if path == "" or (name == "own" and "::" in path):  # an empty entry is the working folder in a shell
        expected = {"own": "./own", "./own": "./own"}.get(name)
    assert find_command(name, path) == expected


def test_without_a_path_the_environments_counts(folder, monkeypatch):
    monkeypatch.setenv("PATH", str(folder / "second"))
    assert find_command("app") == str(folder / "second" / "app")
