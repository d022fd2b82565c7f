"""`fit`, `predict collective` and `advise collective` from the command line, from runs to a file of rules."""

import csv
import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from earlybird.data.collective_configuration import Region, configuration
from earlybird.interop.settings_file import write_settings
from tests.collective_runs import SIZES, planted_s, write_run

ROOT = Path(__file__).parents[3]
BCAST = ("--op", "bcast")
EXAMPLES = re.findall(
    "`earlybird (.+ examples/.+)`", (ROOT / "examples" / "collectives" / "README.md").read_text()
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of broadcasts and reductions, and their profile."""
    path = tmp_path_factory.mktemp("collectives")
    write_run(
        path / "run",
        planted_s,
        methods=("linear", "pipeline:8192", "binomial"),
        operations=("bcast", "reduce"),
        ranks=(2, 3, 4, 6, 8),
        sizes=SIZES[::2],
        map_by=("node", "core"),
        shape="4x1x2",
        launches=2,
    )
    return path


@pytest.fixture
def earlybird(monkeypatch, run_main, folder):
    """Run the command in the folder; returns (exit status, stdout, stderr)."""
    monkeypatch.chdir(folder)

    if not (folder / "p.json").exists():
        # With what the tests of the model selection look for: a fit takes seconds.
        status, *printed = run_main("fit", "run", "-o", "p.json", "--model-selection")
        assert status == 0
        (folder / "printed.json").write_text(json.dumps(printed))
    return run_main


def print_remarks(remarks):
    """Print remarks as the command does."""
    for remark in remarks:
        print(remark, file=sys.stderr)


def test_fit_prints_the_forms_and_the_next_command(earlybird, folder):
    out, err = json.loads((folder / "printed.json").read_text())
    assert "binomial-doubling" in out and "between nodes" in out
    assert "earlybird advise collective --op bcast,reduce --ranks 8 --map-by node --profile p.json" in err
    assert "predict PATTERN" not in err


def test_model_selection_prints_comparison_regressions_and_verdicts(earlybird, folder):
    out, _ = json.loads((folder / "printed.json").read_text())
    for text in ("AICc", "held-out ranks", "beyond half the ranks", "insaghi-3", "Std. Error", "Pr(>|t|)",
                  "I(MPI_Processes > 2)TRUE", "log2(MPI_Processes):Algorithm_Allocation"):  # fmt: skip
        assert text in out
    verdicts = [
        line for line in out.splitlines() if line.startswith("bcast binomial, all sizes: trust alpha-beta")
    ]
    assert len(verdicts) == 1 and "insaghi-3 grows exponentially in the size" in verdicts[0]


def test_model_selection_as_json_contains_the_regressions(earlybird, folder):
    methods, of_both = ("linear", "pipeline:8192", "binomial"), ("bcast", "reduce")
    write_run(folder / "small", planted_s, methods=methods, operations=of_both, ranks=(2, 3, 4, 6),
              sizes=SIZES[::3], launches=2)  # fmt: skip
    status, out, _ = earlybird(
        "fit", "small", "-o", "q.json", "--model-selection", "--mean-over-ranks", "--json"
    )
    value = json.loads(out)
    assert status == 0 and not value["levels"]
    by_node = next(one for one in value["regressions"] if one["what"] == "linear by node")
    assert (by_node["form"], by_node["response"], len(by_node["rows"])) == (2, "T", 1)
    assert len(value["verdicts"]) == 6
    times = {row["times"] for form in value["forms"] for row in form["alternatives"]}
    assert times == {"mean over ranks"}


def test_predict_gives_the_time_of_every_algorithm(earlybird):
    arguments = ("predict", "collective", *BCAST, "--ranks", 7, "--size", "64KiB", "--map-by", "node")
    status, out, _ = earlybird(*arguments, "--profile", "p.json", "--json")
    value = json.loads(out)
    assert (status, value["schema"], value["notes"]) == (0, "earlybird.collective-prediction/1", [])
    node = [0, 1, 2, 3, 0, 1, 2]

    for one in value["algorithms"]:
        exact_s = planted_s("bcast", one["method"], np.array(node), np.zeros(7, dtype=int), 65536)
        assert one["time_s"] == pytest.approx(exact_s, rel=0.1)
        assert one["time_interval_s"][0] <= one["time_s"] <= one["time_interval_s"][1]
    status, out, _ = earlybird(*arguments, "--profile", "p.json", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["method"] for row in rows] == ["linear", "pipeline:8192", "binomial"]


def test_predictions_and_advice_are_shown_as_they_were_printed(earlybird, folder):
    arguments = (*BCAST, "--ranks", 7, "--size", "64KiB", "--map-by", "node", "--profile", "p.json")
    for command in ("predict", "advise"):
        outputs = {format: earlybird(command, "collective", *arguments, "--format", format)[1]
                   for format in ("table", "csv", "json")}  # fmt: skip
        (folder / "answer.json").write_text(outputs["json"])
        for format, output in outputs.items():
            assert earlybird("show", "answer.json", "--format", format)[1] == output != ""


def test_predict_beyond_the_machine_warns_and_prints_published_times(earlybird):
    arguments = ("--op", "bcast", "--ranks", 256, "--size", 1, "--map-by", "node", "--profile", "p.json")
    status, out, err = earlybird("predict", "collective", *arguments, "--reference")
    assert status == 0
    held_out = out.splitlines()[0].index("held-out ranks")
    assert any("binomial" in line and "%" in line[held_out:] for line in out.splitlines()[1:])
    assert "61.1 us" in out and "93.4 us" in out and "Insaghi (paper), insaghi-2" in out
    assert "256 is extrapolated" in err and "do not fit on the 4 nodes measured" in err


def test_interpolated_times_have_no_form_error(earlybird):
    example = ROOT / "examples" / "collectives" / "profile.json"
    arguments = ("predict", "collective", *BCAST, "--ranks", 8, "--size", "8KiB", "--profile", example)
    _, out, _ = earlybird(*arguments)
    lines = {line.split()[0]: line for line in out.splitlines()[1:]}
    assert "interpolated" in lines["default"] and "%" not in lines["default"]
    assert "%" in lines["binomial"]


def test_advise_ranks_algorithms_and_writes_the_rules(earlybird, folder):
    arguments = ("advise", "collective", *BCAST, "--ranks", 8, "--size", "256KiB", "--profile", "p.json")
    status, out, err = earlybird(*arguments, "--config", "rules")
    assert status == 0
    assert "1. OMPI_MCA_coll_tuned_use_dynamic_rules=1" in out
    assert "pipeline in segments of 8" in " ".join(out.split()) and "binomial" in out
    assert "OMPI_MCA_coll_tuned_dynamic_rules_filename=" in err
    assert (folder / "rules").read_text().startswith("1  # operations\n7  # bcast\n")
    status, out, _ = earlybird(*arguments, "--json")
    assert json.loads(out)["schema"] == "earlybird.advice/1"
    status, out, _ = earlybird(*arguments, "--format", "csv")
    assert out.startswith("method,form,time_s,speed_up,basis,measured_speed_up,")


def test_with_a_file_the_sizes_that_it_sets_are_printed_instead_of_those_of_the_models(earlybird, folder):
    example = Path(__file__).parents[3] / "examples" / "collectives" / "profile.json"
    arguments = ("advise", "collective", "--op", "bcast", "--ranks", 8, "--map-by", "node")
    _, out, err = earlybird(*arguments, "--profile", example)
    assert "advised" in out and " sets " not in err
    _, out, err = earlybird(*arguments, "--profile", example, "--config", "rules")
    assert "advised" not in out
    assert "rules sets default from 1024 bytes to 16383; pipeline:8192 from 16384 bytes" in err
    assert "at one size only" in err and "rules does not cover: pipeline:8192 from 1024 bytes to 1024" in err


def test_advice_on_several_operations_is_one_table_and_one_file(earlybird, folder):
    arguments = ("advise", "collective", "--ranks", 8, "--map-by", "node", "--profile", "p.json")
    status, out, err = earlybird(*arguments, "--op", "bcast,reduce,bcast", "--config", "rules")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()[1:]] == ["operation", "bcast", "reduce"]
    assert "rules sets bcast: " in err and "rules sets reduce: " in err and err.count("use it with") == 1
    assert (folder / "rules").read_text().startswith("2  # operations\n7  # bcast\n")
    _, out, err = earlybird(*arguments, "--op", "bcast,reduce,bcast")
    best, sizes = (table.splitlines() for table in out.split("\n\n"))
    assert [line.split()[0] for line in best[1:]] == ["operation", "bcast", "reduce"]
    assert {"bcast", "reduce"} <= {line.split()[0] for line in sizes[1:]}
    assert "coll_tuned_reduce_algorithm=" in out and " sets " not in err
    for all_of_them in ("all", "bcast, reduce", "all,bcast"):
        assert earlybird(*arguments, "--op", all_of_them)[1] == out
    status, written, _ = earlybird(*arguments, "--op", "all", "--json")
    assert json.loads(written)["schema"] == "earlybird.collectives-advice/1"
    (folder / "several.json").write_text(written)
    assert earlybird("show", "several.json")[1] == out
    rows = list(csv.DictReader(io.StringIO(earlybird(*arguments, "--op", "all", "--format", "csv")[1])))
    assert [(row["operation"], row["size_bytes"]) for row in rows[::3]] == [
        ("bcast", str(max(SIZES))), ("reduce", str(max(SIZES))),
    ]  # fmt: skip


def test_notes_on_several_operations_are_printed_once(earlybird):
    arguments = ("advise", "collective", "--ranks", 64, "--map-by", "node", "--profile", "p.json")
    _, _, err = earlybird(*arguments, "--op", "bcast,reduce")
    warnings = [line for line in err.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == len(set(warnings))
    assert len([line for line in warnings if "do not fit on the 4 nodes" in line]) == 1


@pytest.mark.parametrize("command", EXAMPLES)
def test_the_commands_of_the_example_work(earlybird, monkeypatch, tmp_path, command):
    monkeypatch.chdir(ROOT)
    status, out, _ = earlybird(*command.replace("rules", str(tmp_path / "rules")).split())
    assert status == 0 and "pipeline" in out and "binomial" in out
    if "advise" in command:
        assert "pipeline:8192" in (tmp_path / "rules").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "--op", "scan", "--ranks", 4, "--size", 1), "--op is 'scan'; give one of bcast"),
        (("predict", "--op", "gather", "--ranks", 4, "--size", 1), "holds no gather but bcast, reduce"),
        (("predict", "--op", "bcast", "--ranks", 1, "--size", 1), "--ranks is 1; give 2 or more"),
        (("predict", "--op", "bcast", "--ranks", 4, "--size", 1, "--root", 4), "--root is 4 of 4 ranks"),
        (("predict", "--op", "bcast", "--ranks", 4), "bcast needs a size; add --size"),
        (("predict", "--op", "bcast", "--ranks", 4, "--size", 0), "--size is 0 bytes for bcast"),
        (("predict", "--op", "gather", "--ranks", 4), "holds no gather but bcast, reduce"),
        (("predict", "--op", "barrier", "--ranks", 4, "--size", 8), "a barrier has no data"),
        (("predict", "--op", "bcast", "--size", 1), "add --ranks, or --layout"),
        (("predict", "--op", "bcast", "--ranks", 4, "--size", 1, "--algorithm", "ring"), "has linear"),
        (("advise", "--op", "bcast,gather", "--ranks", 4), "holds no gather but bcast, reduce"),
        (("advise", "--op", "bcast,magic", "--ranks", 4), "--op has 'magic'; give some of bcast"),
        (("advise", "--op", "", "--ranks", 4), "--op has ''; give some of bcast, reduce, all"),
        (("advise", "--op", "barrier", "--ranks", 4, "--size", 8), "a barrier has no data"),
        (("advise", "--op", "bcast,reduce", "--ranks", 4, "--size", 0), "--size is 0 bytes for bcast"),
        (("advise", "--op", "bcast", "--ranks", 4, "--layout", "1x1x2"), "the layout 1x1x2 has 2 ranks"),
        (("advise", "--op", "bcast", "--ranks", 4, "--map-by", "moon"), "'--map-by': 'moon' is not one of"),
    ],
)  # fmt: skip
def test_invalid_input_is_refused_in_a_sentence(earlybird, arguments, message):
    command, *rest = arguments
    status, out, err = earlybird(command, "collective", *rest, "--profile", "p.json")
    assert (status, out) == (2, "")
    assert message in err


def test_other_predictions_report_what_is_missing_in_the_profile(earlybird, folder):
    (folder / "pattern.csv").write_text("src,dst,bytes\n0,1,100\n")
    status, _, err = earlybird("predict", "pattern.csv", "--layout", "1x1x2", "--profile", "p.json")
    assert status == 2 and "has no level intra_socket" in err
    status, _, err = earlybird(
        "predict", "pipeline", "--size", 1024, "--gamma", "1us/MB", "--profile", "p.json"
    )
    assert status == 2 and "has no pipelines and no levels" in err


def test_runs_of_too_few_points_make_no_profile(earlybird, folder):
    write_run(folder / "few", planted_s, ranks=(4,), sizes=(8, 1024))
    status, out, err = earlybird("fit", "few", "-o", "few.json")
    assert (status, out) == (2, "") and not (folder / "few.json").exists()
    assert "fewer than 4 points" in err and "measure more --sizes or --ranks" in err


def test_a_file_that_sets_nothing_is_reported(capsys, tmp_path):
    settings = configuration(
        "mpich",
        [
            Region("bcast", "default", 8, 0, 7),
            Region("bcast", "linear", 8, 8, 1023),
            Region("bcast", "default", 8, 1024),
        ],
    )
    print_remarks(write_settings(settings, tmp_path / "rules"))
    output = capsys.readouterr().err
    assert (
        "rules, which sets nothing, so that there is nothing to use: the default" in output
        and "use it with" not in output
        and "linear from 8" in output
    )
    assert "default from 0" not in output
    print_remarks(write_settings(configuration("mpich", [Region("bcast", "linear", 8)]), tmp_path / "rules"))
    assert "use it with: . " in capsys.readouterr().err


def test_files_that_settings_no_longer_use_are_named(capsys, tmp_path):
    settings = configuration("mpich", [Region("bcast", "linear", 8)])
    print_remarks(
        write_settings(replace(settings, files={".json": "{}", ".ch4.json": "{}"}), tmp_path / "b.sh")
    )
    assert "does not use" not in capsys.readouterr().err
    idle = configuration("mpich", [Region("bcast", "default", 8)])
    for given, unused in (
        (replace(idle, files={".json": "{}"}), f"{tmp_path / 'b.sh.ch4.json'}"),
        (idle, f"{tmp_path / 'b.sh.json'} and {tmp_path / 'b.sh.ch4.json'}"),
    ):
        print_remarks(write_settings(given, tmp_path / "b.sh"))
        assert (
            f"b.sh does not use {unused}; remove what an earlier --config wrote\n" in capsys.readouterr().err
        )
    print_remarks(write_settings(configuration("openmpi", [Region("bcast", "linear", 8)]), tmp_path / "b.sh"))
    assert "does not use" not in capsys.readouterr().err


def test_a_profile_without_collectives_is_refused_with_what_to_measure(earlybird, folder):
    level = {"protocols": [{"latency_s": 1e-6, "bandwidth_bytes_per_s": {"1": 1e10}}]}
    value = {"schema": "earlybird.profile/1", "id": "q", "levels": {"intra_socket": level}}
    (folder / "levels.json").write_text(json.dumps(value))
    arguments = ("--op", "bcast", "--ranks", 4, "--profile", "levels.json")
    status, _, err = earlybird("advise", "collective", *arguments)
    assert status == 2 and "holds no collectives; `earlybird measure collective --op bcast --sizes" in err
    status, _, err = earlybird("advise", "collective", "--op", "barrier", *arguments[2:])
    assert status == 2 and "`earlybird measure collective --op barrier --ranks 2,4,6,8 -o RUN`" in err
