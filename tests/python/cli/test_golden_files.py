"""`show` and `report` on the golden file of every kind: printed whole, or refused before anything is."""

import json
import shutil
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[2] / "recorded" / "golden"
SKIPPED = "left out 1 form: the profile golden, form 0, what has no 'algorithm'"


@pytest.mark.parametrize("command", ["show", "report"])
@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.iterdir()))
def test_a_golden_file_is_printed_whole_or_refused_before_anything_is(in_process, tmp_path, name, command):
    source, copy = GOLDEN / name, tmp_path / name
    shutil.copytree(source, copy) if source.is_dir() else shutil.copyfile(source, copy)
    options = ["--terminal"] if command == "report" else []
    result = in_process(command, name, *options, check=False)
    assert "Traceback" not in result.stderr
    assert (result.returncode, bool(result.stdout)) in ((0, True), (2, False))


@pytest.mark.parametrize("options", [("show",), ("report", "--terminal"), ("report",)])
def test_an_old_form_is_left_out_with_one_remark(in_process, options):
    command, *more = options
    result = in_process(command, GOLDEN / "profile-1.json", *more)
    assert result.stderr.count("left out") == 1 and SKIPPED in result.stderr


def test_packing_costs_are_shown_of_a_profile_without_levels(in_process, tmp_path):
    form = {
        "what": {"operation": "packing", "packing": "strided", "cache": "hot", "method": "pack"},
        "form": "table",
        "parameters": {"size_bytes": [8, 8000], "time_s": [1e-7, 1e-5]},
    }
    profile = {"schema": "earlybird.profile/1", "levels": {}, "forms": [form]}
    (tmp_path / "profile.json").write_text(json.dumps(profile))
    result = in_process("show", "profile.json")
    assert all(part in result.stdout for part in ("strided", "100 ns .. 10 us", "800 MB/s"))
