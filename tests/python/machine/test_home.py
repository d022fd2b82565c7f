"""The folder of installed MPIs and builds, whose programs are run."""

import errno
import os

import pytest

from earlybird.data.errors import InputError
from earlybird.machine.home import SCRIPTS, home, scripts_folder


@pytest.fixture
def given(tmp_path, monkeypatch):
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_given_folder_is_used_and_may_be_missing(given):
    assert home() == given
    given.mkdir(mode=0o775)
    assert home() == given


def test_a_folder_in_which_everyone_may_put_programs_is_refused(given):
    given.mkdir()
    given.chmod(0o777)
    with pytest.raises(InputError, match=r"every user may put programs; run chmod o-w"):
        home()


@pytest.mark.parametrize("shared", ["sticky", "of another user"])
def test_no_other_permissions_are_advised_for_a_folder_that_users_share(given, shared):
    given.mkdir()
    given.chmod(0o1777 if shared == "sticky" else 0o777)
    if shared == "of another user":
        if os.geteuid() != 0:
            pytest.skip("only root can make files of other users")
        os.chown(given, 12345, 12345)
    with pytest.raises(InputError, match=r"every user may put programs; give another folder$"):
        home()


@pytest.mark.parametrize("path", ["/dev/null", __file__])
def test_a_device_or_a_file_is_no_folder(monkeypatch, path):
    monkeypatch.setenv("EARLYBIRD_HOME", path)
    with pytest.raises(InputError, match=r", which is not a folder; give another folder$"):
        home()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")
def test_a_folder_that_another_user_made_in_a_shared_one_is_refused(given, monkeypatch):
    given.mkdir()
    os.chown(given, 12345, 12345)
    assert home() == given  # such as an administrator's
    given.parent.chmod(0o1777)
    with pytest.raises(
        InputError, match=r"another user has made .* one inside of it, such as (.*)/earlybird"
    ):
        home()
    # What the sentence says works.
    monkeypatch.setenv("EARLYBIRD_HOME", str(given / "earlybird"))
    assert home() == given / "earlybird"
    (given / "earlybird").mkdir()
    os.chown(given / "earlybird", 12345, 12345)
    assert home() == given / "earlybird"


@pytest.mark.parametrize("kind", SCRIPTS)
def test_scripts_that_cannot_be_written_leave_nothing(given, monkeypatch, kind):
    def full(path, text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(InputError, match="no space left on device; set EARLYBIRD_HOME") as error:
        scripts_folder(kind, {"mpicc": b"#!/bin/sh"}, lambda name: True)
    assert list((given / kind).iterdir()) == []
    assert ("or give --no-interpose" in str(error.value)) == (kind == "launchers")
