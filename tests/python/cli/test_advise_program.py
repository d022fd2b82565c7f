"""`earlybird advise program` and the former `earlybird project` from the command line."""

import json

import pytest

from earlybird.data.advice import advice_from_json
from earlybird.record.advice import AS_RECORDED
from tests.python.record.test_simulation import PROFILE, recorded

__all__ = ["recorded"]


@pytest.fixture
def earlybird(recorded, monkeypatch, run_main, tmp_path):
    """Run the command next to the recording `rec` of two ranks and its profile `p.json`."""
    recorded()
    PROFILE.save(tmp_path / "p.json")
    monkeypatch.chdir(tmp_path)
    return run_main


def test_advice_is_printed_and_shown_by_the_report(earlybird, tmp_path):
    status, out, err = earlybird("advise", "program", "rec", "--profile", "p.json")
    assert status == 0 and AS_RECORDED in out and "add some with --to-layout" in err
    _, out, _ = earlybird("advise", "program", "rec", "--profile", "p.json", "--json")
    assert AS_RECORDED in {one.method for one in advice_from_json(json.loads(out)).ranked}
    (tmp_path / "advice.json").write_text(out)
    status, out, _ = earlybird("report", "advice.json", "--terminal")
    assert status == 0 and "recorded program" in out


def test_advice_on_a_recording_is_that_on_a_program(earlybird):
    of_program = earlybird("advise", "program", "rec", "--profile", "p.json", "--json")
    assert of_program[0] == 0 and earlybird("advise", "rec", "--profile", "p.json", "--json") == of_program
    status, _, err = earlybird("advise", "colective")
    assert status == 2 and "did you mean 'collective'" in err
    status, _, err = earlybird("fit", "rec")
    assert status == 2 and "rec is a recording, not a run" in err


def test_recording_without_events_is_refused_with_what_to_do(earlybird, tmp_path):
    for path in (tmp_path / "rec").glob("*.trace"):
        path.unlink()
    status, out, err = earlybird("advise", "program", "rec", "--profile", "p.json")
    assert (status, out) == (2, "") and "record the program again with --events all" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--to-layout", "1x1x3"), "has 3 ranks and the recording has 2"),
        (("--to-layout", "1x1"), "--to-layout"),
        (("--layout", "1x1x4"), "has 2 ranks and the layout 1x1x4 has 4"),
        (("--to-profile", "none.json"), "none.json"),
        (("--map-by", "node"), "--map-by"),
    ],
)
def test_changes_that_do_not_fit_are_refused(earlybird, options, message):
    status, out, err = earlybird("advise", "program", "rec", "--profile", "p.json", *options)
    assert (status, out) == (2, "") and message in err


def test_former_command_names_the_new_one(earlybird):
    status, out, err = earlybird("project", "rec", "--profile", "p.json")
    assert (status, out) == (2, "")
    assert (
        err == "earlybird: `earlybird project` is now `earlybird predict program`; see "
        "`earlybird predict program --help`\n"
    )
