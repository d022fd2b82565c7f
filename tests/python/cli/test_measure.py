"""`earlybird measure` and `replay` from the command line: printing, resuming, refused input."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest

from earlybird.cli import main
from earlybird.cli.commands import replay
from earlybird.cli.commands.measure import warn_if_undecided
from earlybird.cli.session import measuring
from earlybird.data.errors import WorkError
from earlybird.data.exchange_models import MODELS
from earlybird.data.run import Run
from earlybird.measure.suites import SUITES

PLANTED = Path(__file__).parents[2] / "e2e" / "profile.json"
SYNTHETIC = ("--launcher", "synthetic:planted.json")
SMALL = ("--sizes", "8,1KiB", "--launches", "2", "--quiet")


@pytest.fixture
def planted(tmp_path):
    shutil.copy(PLANTED, tmp_path / "planted.json")
    (tmp_path / "ring.csv").write_text("src,dst,bytes\n0,1,1000\n1,0,2000\n")


def settings(run: Path) -> dict:
    return json.loads((run / "run.json").read_text())["settings"]


def test_all_formats_print_the_same(earlybird, planted):
    arguments = ("measure", "pingpong", *SYNTHETIC, *SMALL)
    output = json.loads(earlybird(*arguments, "-o", "a", "--json").stdout)
    assert [(point["size_bytes"], point["launches"]) for point in output["points"]] == [(8, 2), (1024, 2)]
    rows = earlybird(*arguments, "-o", "b", "--format", "csv").stdout.splitlines()
    assert rows[0].split(",") == list(output["points"][0])
    assert [row.split(",")[:5] for row in rows[1:]] == [
        ["pingpong", "half_round_trip", "synthetic", "intra_socket", size] for size in ("8", "1024")
    ]
    lines = earlybird(*arguments, "-o", "c", "--format", "osu").stdout.splitlines()
    assert lines[0] == "# OSU MPI Latency Test" and lines[2].split()[:4] == [
        "#",
        "Size",
        "Avg",
        "Latency(us)",
    ]
    for line, point in zip(lines[3:], output["points"], strict=True):
        size, _, median_us = map(float, line.split())
        assert (size, median_us) == (point["size_bytes"], pytest.approx(point["time_s"] * 1e6, abs=1e-4))


def test_points_that_exceed_the_budget_are_measured_once_and_reported(earlybird, planted):
    arguments = ("measure", "pingpong", *SYNTHETIC, "--sizes", "8,1KiB", "--launches", "2", "--quiet")
    done = earlybird(*arguments, "--budget", "1us", "-o", "short")
    assert "with a budget of 1 us: every point gets one launch" in done.stderr
    assert "with a budget of" not in earlybird(*arguments, "--budget", "1min", "-o", "enough").stderr


def test_completion_reports_the_end_of_send_and_receive(earlybird, planted):
    arguments = ("measure", "completion", *SYNTHETIC, "--sizes", "8,1MiB", "--launches", "2", "--quiet")
    _, _, header, *table = earlybird(*arguments, "-o", "a").stdout.splitlines()
    assert "send complete after" in header
    output = json.loads(earlybird(*arguments, "-o", "b", "--json").stdout)["points"]
    assert [(point["size_bytes"], point["receiver"]) for point in output] == [
        (size, receiver) for size in (8, 1 << 20) for receiver in ("late", "prompt")
    ]
    small_late, small_prompt, large_late, large_prompt = output
    for point in output:
        assert point["fraction"] == pytest.approx(point["send_complete_s"] / point["received_s"], rel=0.05)
        assert (
            "bandwidth_bytes_per_s" not in point
        )  # a time with the pause of a late receiver has no bandwidth
    assert max(small_late["fraction"], small_prompt["fraction"]) < 0.5
    assert min(large_late["fraction"], large_prompt["fraction"]) > 0.9
    assert min(small_late["received_s"], large_late["received_s"]) > 4e-3
    assert [line.split()[-3] for line in table] == [f"{point['fraction']:.2f}" for point in output]


def test_csv_of_several_suites_has_the_columns_of_all(earlybird, planted):
    arguments = ("measure", "pingpong", "completion", *SYNTHETIC, "--quick", "--quiet")
    rows = list(csv.DictReader(earlybird(*arguments, "-o", "a", "--format", "csv").stdout.splitlines()))
    for row in rows:
        assert bool(row["fraction"]) == (row["kernel"] == "completion") != bool(row["bandwidth_bytes_per_s"])


@pytest.mark.parametrize(
    ("format", "way"),
    [
        ("prometheus", "`earlybird export RUN --to openmetrics -o FILE` writes prometheus"),
        ("openmetrics", "`earlybird export RUN --to openmetrics -o FILE`"),
        ("loggps", "`earlybird export PROFILE.json --to loggps -o FILE`, of a profile from `earlybird fit"),
        ("junit", "`earlybird compare RUN RUN --format junit`"),
        ("otava", "`earlybird history RUN... --format otava`"),
    ],
)
def test_formats_of_other_commands_name_the_command(earlybird, refused, format, way):
    result = earlybird("measure", "pingpong", "--format", format, check=False)
    refused(result, f"--format is '{format}'; choose table, osu, csv or json; {way}")


def test_a_format_that_no_command_has_names_none(earlybird, refused):
    result = earlybird("measure", "pingpong", "--format", "yaml", check=False)
    refused(result, "--format is 'yaml'; choose table, osu, csv or json")
    assert "`" not in result.stderr


def test_completion_has_two_times_and_no_osu_format(earlybird, planted, refused, tmp_path):
    arguments = ("measure", "completion", *SYNTHETIC, "--format", "osu", "-o", "run")
    refused(earlybird(*arguments, check=False), "--format osu", "completion")
    assert not (tmp_path / "run").exists()


def test_contention_has_no_osu_format(earlybird, planted, refused, tmp_path):
    """Its messages are no windows of osu_bw."""
    arguments = ("measure", "contention", *SYNTHETIC, *SMALL, "--format", "osu", "-o", "run")
    refused(earlybird(*arguments, check=False), "--format osu", "contention")
    assert not (tmp_path / "run").exists()


def test_pipeline_reports_time_and_speed_up_of_each_method(earlybird, planted):
    """4 partitions of 256 KiB, 3 us and 10 GB/s for each message, the last 20 us late."""
    gamma = ("--gamma", f"{20e-6 / 2**18:.15g}", "--sizes", "1MiB")
    arguments = ("measure", "pipeline", *SYNTHETIC, *gamma, "--quiet")
    output = json.loads(earlybird(*arguments, "-o", "run", "--json").stdout)["points"]
    assert [row["method"] for row in output] == ["single", "many"]
    assert {(row["partitions"], row["launches"]) for row in output} == {(4, 5)}
    single, many = output
    bulk_s, partition_s = 3e-6 + 2**20 / 1e10, 3e-6 + 2**18 / 1e10
    assert single["time_s"] == pytest.approx(bulk_s, rel=0.02)
    assert many["time_s"] == pytest.approx(4 * partition_s - 20e-6, rel=0.02)
    assert single["speed_up"] is None and many["reference"] == "single"
    assert many["speed_up_low"] < many["speed_up"] < many["speed_up_high"]
    assert many["speed_up_coverage"] == 1 - 2**-4  # from the lowest to the highest of 5 launches
    assert many["speed_up"] == pytest.approx(bulk_s / (4 * partition_s - 20e-6), rel=0.02)
    for row in output:
        assert row["delay_s"] == pytest.approx(20e-6)
        beta = row["single_bandwidth_bytes_per_s"]
        assert beta == pytest.approx(2**20 / single["time_s"])
        assert row["ideal_speed_up"] == pytest.approx(4 / (4 - row["gamma_s_per_byte"] * beta))
    table = earlybird(*arguments, "-o", "again").stdout
    assert f"{many['speed_up']:.2f}" in table and f"{many['ideal_speed_up']:.2f}" in table
    assert "in 94% of all cases" in table
    assert "speed-up over single: median" in table and "too short" not in table


def test_a_delay_too_short_for_a_speed_up_is_reported(earlybird, planted):
    """10 GB/s: gamma*beta is 0.01 here, and 2.5 with the gamma of the remark."""
    arguments = ("measure", "pipeline", *SYNTHETIC, "--sizes", "4MiB", "--launches", "2", "--quiet")
    output = earlybird(*arguments, "--gamma", "1us/MB", "-o", "run").stdout
    assert "same socket: the delay is too short" in output
    assert "--gamma 250us/MB shows it" in output


def test_pipeline_without_a_delay_pays_every_latency(earlybird, planted):
    """Equation (5) of Gillis et al. 2023: n small messages take n times as long as one."""
    arguments = ("--sizes", "8", "--gamma", "0", "--partitions", "1,8", "--quiet", "-o", "run", "--json")
    rows = json.loads(earlybird("measure", "pipeline", *SYNTHETIC, *arguments).stdout)["points"]
    gains = {row["partitions"]: row["speed_up"] for row in rows if row["method"] == "many"}
    assert gains == {1: pytest.approx(1, rel=0.02), 8: pytest.approx(1 / 8, rel=0.02)}


def test_a_pipeline_is_resumed_where_it_stopped(earlybird, planted, refused, tmp_path):
    arguments = ("--sizes", "6", "--partitions", "2,3", "--gamma", "1us/kB", "--launches", "2", "--quiet")
    earlybird("measure", "pipeline", *SYNTHETIC, *arguments, "-o", "run")
    samples = tmp_path / "run" / "samples.ndjson"
    lines = samples.read_text().splitlines(keepends=True)
    assert len(lines) == 2 * 2 * 2
    samples.write_text("".join(lines[:5]))  # killed between the two methods of a point
    earlybird("measure", "--resume", "-o", "run", "--gamma", "1us/kB")
    resumed = samples.read_text().splitlines(keepends=True)
    assert resumed[:5] == lines[:5] and len(resumed) == 5 + 4
    earlybird("measure", "--resume", "-o", "run")
    assert samples.read_text().splitlines(keepends=True) == resumed
    resume = ("measure", "--resume", "-o", "run")
    refused(earlybird(*resume, "--gamma", "2us/kB", check=False), "--gamma is 2us/kB")
    refused(earlybird(*resume, "--partitions", "2", check=False), "--partitions is 2")


def test_a_run_that_exists_is_continued_on_request_only(earlybird, planted, refused):
    measured = ("measure", "pingpong", *SYNTHETIC, "--sizes", "8", "--launches", "1", "--quiet", "-o", "run")
    earlybird(*measured)
    refused(earlybird(*measured, check=False), "run exists already", "add --resume to continue that run")


def test_a_pipeline_of_version_0_1_0_is_resumed_with_its_two_methods(earlybird, planted, tmp_path):
    """Its settings have no methods, and its points no threads."""
    arguments = ("--sizes", "6", "--partitions", "2", "--gamma", "1us/kB", "--launches", "2", "--quiet")
    earlybird("measure", "pipeline", *SYNTHETIC, *arguments, "-o", "run")
    header = json.loads((tmp_path / "run" / "run.json").read_text())
    for name in (
        "methods",
        "aggregation",
        "vcis",
        "ai",
        "ci",
        "frequency",
        "epsilon",
        "delta",
        "thread_counts",
    ):
        del header["settings"][name]
    (tmp_path / "run" / "run.json").write_text(json.dumps(header))
    samples = tmp_path / "run" / "samples.ndjson"
    old = [json.loads(line) for line in samples.read_text().splitlines()]
    for sample in old:
        assert sample["config"].pop("threads") == 1
    samples.write_text("".join(json.dumps(sample) + "\n" for sample in old))
    before = samples.read_bytes()
    rows = json.loads(earlybird("measure", "--resume", "-o", "run", "--json").stdout)["points"]
    assert [(row["method"], row["threads"]) for row in rows] == [("single", 1), ("many", 1)]
    assert samples.read_bytes() == before


def test_a_run_of_a_version_without_pipelines_is_resumed(earlybird, planted, refused, tmp_path):
    earlybird("measure", "pingpong", *SYNTHETIC, *SMALL, "-o", "run")
    path = tmp_path / "run" / "run.json"
    header = json.loads(path.read_text())
    assert "gamma" not in header["settings"]
    header["settings"] |= {"competitors": None}  # that version stored the options of all suites
    path.write_text(json.dumps(header))
    earlybird("measure", "--resume", "-o", "run", "--launches", "3")
    refused(earlybird("measure", "--resume", "-o", "run", "--gamma", "0", check=False), "started without it")


def test_methods_have_no_osu_format(earlybird, planted, refused, tmp_path):
    arguments = ("measure", "pipeline", *SYNTHETIC, "--sizes", "8", "--format", "osu", "-o", "run")
    refused(earlybird(*arguments, check=False), "--format osu", "pipeline")
    assert not (tmp_path / "run").exists()


def test_a_run_stores_its_mpi(earlybird, planted, tmp_path):
    """Otherwise an MPI that is built before --resume could become the default."""
    earlybird("measure", "pingpong", *SYNTHETIC, *SMALL, "-o", "run")
    assert settings(tmp_path / "run")["mpi"] == "synthetic"
    earlybird("replay", "ring.csv", "--layout", "1x1x2", *SYNTHETIC, "--quiet", "-o", "replayed")
    assert settings(tmp_path / "replayed")["mpi"] == "synthetic"


def test_a_run_is_continued_only_by_the_command_that_created_it(earlybird, planted, refused):
    earlybird("measure", "pingpong", *SYNTHETIC, *SMALL, "-o", "run")
    earlybird("replay", "ring.csv", "--layout", "1x1x2", *SYNTHETIC, "--quiet", "-o", "replayed")
    refused(earlybird("measure", "--resume", "-o", "replayed", check=False), "replayed", "another command")
    refused(earlybird("replay", "--resume", "-o", "run", check=False), "run", "another command")
    refused(earlybird("measure", "contention", "--resume", "-o", "run", check=False), "run measures pingpong")
    earlybird("measure", "--resume", "-o", "run")
    earlybird("replay", "--resume", "-o", "replayed", "--json")


def test_limits_given_with_resume_are_used(earlybird, planted, monkeypatch):
    """A launch that ended at --stall-limit asks for a larger one, and for --resume."""
    plans = []
    measure = measuring.measure
    monkeypatch.setattr(
        measuring,
        "measure",
        lambda run, launcher, plan, *rest: plans.append(plan) or measure(run, launcher, plan, *rest),
    )
    earlybird("measure", "pingpong", *SYNTHETIC, *SMALL, "-o", "run", "--stall-limit", "5s")
    earlybird("measure", "--resume", "-o", "run", "--time-limit", "2h")
    earlybird("measure", "--resume", "-o", "run", "--stall-limit", "10min")
    assert [(plan.time_limit_s, plan.stall_limit_s) for plan in plans] == [(3600, 5), (7200, 5), (3600, 600)]


def test_options_given_with_resume_must_be_unchanged(earlybird, planted, refused, tmp_path):
    arguments = ("measure", "pingpong", *SYNTHETIC, *SMALL, "-o", "run")
    earlybird(*arguments)
    earlybird(*arguments, "--resume")
    resume = ("measure", "--resume", "-o", "run")
    refused(earlybird(*resume, "--sizes", "8,2KiB", check=False), "--sizes is 8,2KiB", "with 8,1KiB")
    refused(earlybird(*resume, "--mpi", "openmpi", check=False), "--mpi is openmpi", "with synthetic")
    refused(earlybird(*resume, "--quick", check=False), "--quick", "without it")
    replay = ("replay", "ring.csv", "--layout", "1x1x2", *SYNTHETIC, "--quiet", "-o", "replayed")
    earlybird(*replay)
    earlybird(*replay, "--resume")
    (tmp_path / "other.csv").write_text("src,dst,bytes\n0,1,1\n")
    refused(earlybird("replay", "other.csv", "--resume", "-o", "replayed", check=False), "another pattern")
    refused(earlybird("replay", "--resume", "-o", "replayed", "--layout", "1x1x3", check=False), "--layout")


def test_a_run_of_another_version_is_not_continued(earlybird, planted, refused, tmp_path):
    earlybird("measure", "pingpong", *SYNTHETIC, *SMALL, "-o", "run")
    path = tmp_path / "run" / "run.json"
    header = json.loads(path.read_text())
    header["settings"]["effort"]["patience"] = 3
    path.write_text(json.dumps(header))
    refused(earlybird("measure", "--resume", "-o", "run", check=False), "another version")


def test_a_replay_predicts_once(planted, tmp_path, monkeypatch, capsys):
    """A second prediction would repeat its notes and double the time for large patterns."""
    calls = []
    original = replay.predict_stages
    monkeypatch.setattr(
        replay, "predict_stages", lambda *given, **more: calls.append(given) or original(*given, **more)
    )
    monkeypatch.chdir(tmp_path)
    arguments = [
        "replay",
        "ring.csv",
        "--layout",
        "1x1x2",
        "--profile",
        "planted.json",
        "-o",
        "run",
        "--json",
    ]
    monkeypatch.setattr("sys.argv", ["earlybird", *arguments, "--quiet", *SYNTHETIC])
    with pytest.raises(SystemExit) as end:
        main.run()
    assert end.value.code == 0
    errors = json.loads(capsys.readouterr().out)["error"]
    assert set(errors) == {name for name, model in MODELS.items() if not model.inside}
    assert len(calls) == 1


def test_threads_of_synthetic_ranks_are_refused(earlybird, planted, refused, tmp_path):
    arguments = ("measure", "pingpong", *SYNTHETIC, *SMALL, "--threads", "2", "-o", "run")
    refused(earlybird(*arguments, check=False), "--threads is 2", "synthetic")
    assert not (tmp_path / "run").exists()


def test_measure_without_a_suite_lists_them(earlybird):
    output = earlybird("measure").stdout
    assert "pingpong" in output and "contention" in output and "earlybird measure" in output


def options_in_help(earlybird, *suites):
    return set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", earlybird("measure", *suites, "--help").stdout, re.M))


def test_the_help_of_a_suite_lists_its_options_and_no_others(earlybird):
    common = options_in_help(earlybird, "pingpong", "contention")
    assert common == options_in_help(earlybird) and {"--output", "--mpi", "--threads"} < common
    for name, suite in SUITES.items():
        own = {option.option for option in suite.takes}
        assert options_in_help(earlybird, name) == own | common and own - common
    printed = earlybird("measure", "collective", "--help").stdout
    assert "several separated by commas" in " ".join(printed.split())


def test_the_suites_that_compare_thread_counts_are_named(earlybird, refused):
    comparing = "pipeline, partitioned, halo3d, sweep3d, comb and msgrate, measured alone"
    refused(earlybird("measure", "pingpong", "--threads", "1,2", "-o", "run", check=False), comparing)


def test_a_suite_may_stand_anywhere_among_the_options(earlybird, planted, tmp_path):
    small = (*SYNTHETIC, "--launches", "1", "--quiet")
    earlybird("measure", "-o", "contention", *small, "contention", "--sizes", "8", "--competitors", "2")
    assert settings(tmp_path / "contention")["suites"] == ["contention"]
    earlybird("measure", "pingpong", "--budget", "1s", *small, "-o", "two", "completion", "pingpong")
    assert settings(tmp_path / "two")["suites"] == ["pingpong", "completion"]
    assert "sizes" not in settings(tmp_path / "two")


def test_an_option_of_another_suite_is_refused_with_the_help_to_read(earlybird, refused):
    ended = earlybird("measure", "pingpong", "--competitors", "2", check=False)
    refused(ended, "--competitors", "see `earlybird measure pingpong --help`")
    ended = earlybird("measure", "pipeline", "--algorithm", "linear", "pingpong", check=False)
    refused(ended, "--algorithm is an option of collective, and several suites take the common options only")


def test_threads_given_with_resume_are_compared(earlybird, planted, refused):
    earlybird("measure", "pingpong", *SYNTHETIC, *SMALL, "-o", "run")
    earlybird("measure", "--resume", "-o", "run", "--threads", "1")
    refused(earlybird("measure", "--resume", "-o", "run", "--threads", "2", check=False), "--threads is 2")


def test_a_run_is_measured_again_and_compared(earlybird, planted, refused, tmp_path):
    earlybird("measure", "pingpong", *SYNTHETIC, *SMALL, "-o", "before")
    output = earlybird("measure", "--against", "before", "--quiet", "-o", "after").stdout
    assert "before    before" in output and "of 2 points" in output
    before, after = settings(tmp_path / "before"), settings(tmp_path / "after")
    assert after == before | {"against": str(tmp_path / "before")}
    again = earlybird("measure", "--resume", "-o", "after", "--launches", "3", "--quiet")
    assert "2, 3" in again.stdout  # launches of each side
    refused(earlybird("measure", "--against", "before", "--sizes", "8", check=False), "--sizes is 8")
    refused(
        earlybird("measure", "contention", "--against", "before", check=False), "before measures pingpong"
    )
    refused(earlybird("measure", "--against", "missing", check=False), "missing")
    refused(
        earlybird("measure", "--against", "before", "--env", "X=1", check=False), "--env has X", "synthetic"
    )
    refused(
        earlybird("measure", "--resume", "-o", "after", "--against", "after", check=False), "--against is"
    )
    (tmp_path / "before").rename(tmp_path / "moved")
    alone = earlybird("measure", "--resume", "-o", "after", "--quiet", check=False)
    assert alone.returncode == 3  # without a verdict
    assert "not compared" in alone.stderr and "next: earlybird" in alone.stderr


def test_that_a_comparison_cannot_decide_is_said_before_it_is_measured(earlybird, planted, tmp_path, capsys):
    earlybird("measure", "pingpong", *SYNTHETIC, *SMALL, "-o", "before")
    before = Run.open(tmp_path / "before")
    settings = {"launcher": "mpiexec", "against": "before"}
    warn_if_undecided(before, settings, 5)
    assert "which has at most 2 of a point, with --resume -o" in capsys.readouterr().err
    warn_if_undecided(before, settings | {"against": None}, 3)
    said = "will not decide, since that needs 5 launches on each side; give --launches 5 or more"
    assert said in " ".join(capsys.readouterr().err.split())
    warn_if_undecided(before, settings | {"against": None}, 5)
    assert capsys.readouterr().err == ""


def test_a_run_that_is_slower_than_before_ends_with_the_status_of_compare(earlybird, planted, tmp_path):
    few = ("--sizes", "8,1KiB", "--launches", "5", "--quiet")
    earlybird("measure", "pingpong", *SYNTHETIC, *few, "-o", "before")
    profile = json.loads(PLANTED.read_text())
    for protocol in profile["levels"]["intra_socket"]["protocols"]:
        protocol["latency_s"] *= 2
    (tmp_path / "planted.json").write_text(json.dumps(profile))
    again = ("measure", "--against", "before", "--quiet", "--seed", "2")
    slower = earlybird(*again, "-o", "after", check=False)
    assert slower.returncode == 1 and "slower, 0 faster" in slower.stdout
    # Whatever is printed.
    printed = earlybird(*again, "-o", "other", "--json", check=False)
    assert printed.returncode == 1 and json.loads(printed.stdout)["points"]


@pytest.mark.parametrize(("against", "status"), [("before", 3), (None, 1)])
def test_a_measurement_that_fails_has_no_verdict_if_it_was_to_be_compared(
    earlybird, planted, monkeypatch, against, status
):
    earlybird("measure", "pingpong", *SYNTHETIC, *SMALL, "-o", "before")

    def fail(*arguments, **more):
        raise WorkError("a node died")

    monkeypatch.setattr(measuring, "run_session", fail)
    arguments = ("--against", against) if against else ("pingpong", *SYNTHETIC)
    assert earlybird("measure", *arguments, "--quiet", "-o", "run", check=False).returncode == status


@pytest.mark.parametrize("given", ["", "=1", "1X=2", "X=a\nb", "X=1+Y=2", "X"])
def test_variables_that_are_none_are_refused(earlybird, refused, given):
    refused(earlybird("measure", "pingpong", "--env", given, check=False), "--env is")


def test_several_mpis_of_drawn_times_are_refused(earlybird, planted, refused, tmp_path):
    arguments = ("measure", "pingpong", *SYNTHETIC, "--mpi", "mpich", "--mpi", "openmpi", "-o", "run")
    refused(earlybird(*arguments, check=False), "--mpi is given 2 times", "synthetic")
    assert not (tmp_path / "run").exists()


def test_the_suites_are_listed_in_every_format(earlybird):
    listed = json.loads(earlybird("measure", "--json").stdout)["suites"]
    assert [one["suite"] for one in listed] == list(SUITES)
    rows = list(csv.DictReader(earlybird("measure", "--format", "csv").stdout.splitlines()))
    assert rows == listed


def test_times_with_a_large_clock_residual_are_reported(earlybird, planted, tmp_path):
    earlybird("measure", "completion", *SYNTHETIC, *SMALL, "-o", "a")
    samples = tmp_path / "a" / "samples.ndjson"
    lines = [json.loads(line) | {"clock_residual_s": 1e-4} for line in samples.read_text().splitlines()]
    samples.write_text("".join(json.dumps(line) + "\n" for line in lines))
    output = earlybird("measure", "--resume", "-o", "a", "--quiet").stderr
    # The pause of a late receiver is long compared with the clock residual.
    assert (
        "up to 100 us" in output and "4 samples" in output and "completion up to 1 KiB are doubtful" in output
    )


def test_more_threads_than_a_kernel_takes_are_refused_before_measuring(earlybird, planted, refused, tmp_path):
    for suite in ("pingpong", "pipeline"):
        arguments = ("measure", suite, "--threads", "5000", "-o", "run")
        refused(earlybird(*arguments, check=False), "--threads has 5000; give 1 to 1024")
    assert not (tmp_path / "run").exists()


def test_the_next_command_is_possible(earlybird, planted):
    """Pipelines of one size, or with noise, do not determine a bandwidth."""
    arguments = ("measure", "pipeline", *SYNTHETIC, "--launches", "1", "--quiet", "--sizes")
    assert "next: earlybird fit run " in earlybird(*arguments, "8,1KiB", "-o", "run").stderr
    earlybird("fit", "run", "-o", "p.json")
    assert "next: earlybird report one " in earlybird(*arguments, "8", "-o", "one").stderr


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--launches", "100000000", "give 1 to 10000"),
        ("--seed", "-1", "give 0 to 9223372036854775807"),
        ("--budget", "1e30s", "at most 3.15576e+09 seconds"),
        ("--stall-limit", "9" * 5000, "--stall-limit is '999"),
    ],
)
def test_numbers_that_no_measurement_has_are_refused(earlybird, planted, option, value, says):
    refused = earlybird("measure", "pingpong", *SYNTHETIC, *SMALL, option, value, "-o", "run", check=False)
    assert refused.returncode == 2 and says in refused.stderr and refused.stderr.count("\n") == 1
    assert not Path("run").exists()
