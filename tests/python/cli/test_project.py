"""`earlybird project` and `earlybird advise program` from the command line."""

import csv
import io
import json

import pytest

from earlybird.data.advice import advice_from_json
from earlybird.data.projection import projection_from_json
from earlybird.record.advice import AS_RECORDED
from tests import recordings

EACH = 18 * 10**6


def level(bandwidth):
    return {"protocols": [{"latency_s": 0, "bandwidth_bytes_per_s": {"1": bandwidth}}]}


@pytest.fixture
def earlybird(monkeypatch, run_main, tmp_path):
    """Run the command next to the recording `rec` of four ranks on two nodes and a profile `p.json`."""
    levels = {"intra_socket": level(1e9), "inter_socket": level(1e9), "inter_node": level(1e8)}
    profile = {"schema": "earlybird.profile/1", "id": "p", "levels": levels}
    (tmp_path / "p.json").write_text(json.dumps(profile))
    recordings.on_disk(tmp_path / "rec", 4, recordings.ring(4, 1, EACH), host=lambda rank: f"n{rank // 2}")
    monkeypatch.chdir(tmp_path)
    return run_main


def test_project_prints_the_phases_and_the_time_of_each_change(earlybird, tmp_path):
    status, out, err = earlybird("project", "rec", "--profile", "p.json", "--to-layout", "1x1x4")
    assert status == 0
    assert "4 ranks on 2x1x2" in out
    assert "1x1x4" in out
    assert "allreduce is not projected" in err
    status, out, _ = earlybird(
        "project", "rec", "--profile", "p.json", "--partitions", 4, "--delay", "1s", "--json"
    )
    projection = projection_from_json(json.loads(out))
    kinds = {change.kind for change in projection.phases[0].changes}
    assert kinds == {"layout", "partitions"}  # by default the other way to fill the nodes
    (tmp_path / "projection.json").write_text(out)
    _, shown, _ = earlybird("show", "projection.json", "--format", "csv")
    assert {row["change"] for row in csv.DictReader(io.StringIO(shown))} == {
        "2x1x2 by node", "4 partitions, delay 1 s given",
    }  # fmt: skip


def test_advise_program_ranks_the_changes_and_the_report_shows_them(earlybird, tmp_path):
    status, out, _ = earlybird("advise", "program", "rec", "--profile", "p.json", "--to-layout", "1x1x4")
    assert status == 0
    assert out.split()[out.split().index("1") + 1] == "1x1x4"
    _, out, _ = earlybird("advise", "program", "rec", "--profile", "p.json", "--json")
    advice = advice_from_json(json.loads(out))
    assert [one.method for one in advice.ranked] == [AS_RECORDED, "2x1x2 by node"]
    (tmp_path / "advice.json").write_text(out)
    status, out, _ = earlybird("report", "advice.json", "--terminal")
    assert status == 0
    assert "o change is clearly faster" in out


def test_advice_on_a_recording_is_that_on_a_program(earlybird):
    of_program = earlybird("advise", "program", "rec", "--profile", "p.json", "--json")
    assert of_program[0] == 0 and earlybird("advise", "rec", "--profile", "p.json", "--json") == of_program
    status, _, err = earlybird("advise", "colective")
    assert status == 2 and "did you mean 'collective'" in err
    status, _, err = earlybird("fit", "rec")
    assert status == 2 and "rec is a recording, not a run" in err


def test_without_a_change_the_options_that_add_one_are_named(earlybird):
    one_node = ("rec", "--profile", "p.json", "--layout", "1x1x4")
    assert "--to-layout" in earlybird("advise", "program", *one_node)[2]
    assert "no change to project; add some with --to-layout" in earlybird("project", *one_node)[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "add --profile"),
        (("--profile", "p.json", "--layout", "1x1x8"), "give a layout of 4 ranks"),
        (("--profile", "p.json", "--to-layout", "x"), "--to-layout: the layout is 'x'"),
        (("--profile", "p.json", "--partitions", 1), "'--partitions': 1 is not 2 or more"),
        (("--profile", "p.json", "--noise-percent", -1), "'--noise-percent': -1.0 is not from 0 to 1000"),
        (("--profile", "p.json", "--delay", "1ms", "--noise-percent", 4), "give one of them"),
        (("--profile", "p.json", "--phase", 9), "phases 1 to 2"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(earlybird, options, message):
    status, out, err = earlybird("project", "rec", *options)
    assert (status, out) == (2, "")
    assert message in err.replace("\n", " ")
