"""The folder of installed MPIs and builds, whose programs are run."""

import os

import pytest

from earlybird.data.errors import InputError
from earlybird.machine.home import home


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")
def test_a_folder_that_another_user_made_in_a_shared_one_is_refused(given):
    given.mkdir()
    os.chown(given, 12345, 12345)
    assert home() == given  # such as an administrator's
    given.parent.chmod(0o1777)
    with pytest.raises(InputError, match="another user has made"):
        home()
