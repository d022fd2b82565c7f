"""The whole spine without MPI: a known profile comes back through measure, fit, predict and replay."""

import json
import re
import shutil
from pathlib import Path

import pytest

PLANTED = Path(__file__).parent / "profile.json"


@pytest.fixture
def earlybird(in_process):
    return in_process


@pytest.fixture
def planted(tmp_path):
    shutil.copy(PLANTED, tmp_path / "planted.json")
    return json.loads(PLANTED.read_text())["levels"]["intra_socket"]["protocols"]


@pytest.mark.thorough
def test_a_known_profile_comes_back(in_process, tmp_path, planted):
    earlybird = in_process
    earlybird("measure", "pingpong", "contention", "--launcher", "synthetic:planted.json", "-o", "run")
    earlybird("fit", "run", "-o", "profile.json")
    fitted = json.loads((tmp_path / "profile.json").read_text())["levels"]["intra_socket"]["protocols"]
    assert [protocol["name"] for protocol in fitted] == ["eager", "rendezvous"]
    # The switch is known to within the sizes measured on both sides of it.
    assert 4096 < fitted[1]["min_bytes"] <= 8192
    for mine, theirs in zip(fitted, planted, strict=True):
        assert mine["latency_s"] == pytest.approx(theirs["latency_s"], rel=0.03)
        for n, bandwidth in theirs["bandwidth_bytes_per_s"].items():
            assert mine["bandwidth_bytes_per_s"][n] == pytest.approx(bandwidth, rel=0.05)

    sizes = ("--min-size", "10kB", "--max-size", "1MB")
    earlybird("pattern", "random", "--ranks", "4", "--messages", "20", *sizes, "-o", "random.csv")
    result = earlybird("replay", "random.csv", "--layout", "1x1x4", "--profile", "profile.json", "--launcher",
                       "synthetic:planted.json", "-o", "replay", "--json")  # fmt: skip
    comparison = json.loads(result.stdout)
    assert comparison["schema"] == "earlybird.comparison/1"
    # The replay drew its times from the staircase: it is right to within the noise, the others are not.
    assert comparison["error"]["staircase"] < 0.05 < comparison["error"]["postal"]
    assert abs(comparison["slowest_error"]["staircase"]) < 0.05

    earlybird("report", "run", "profile.json", "replay", "-o", "report.html")
    assert "staircase" in (tmp_path / "report.html").read_text()


def test_whether_senders_wait_comes_back_from_completion_times(earlybird, tmp_path, planted):
    """As over TCP: eager sends and the smaller ones of the large protocol do not wait."""
    value = json.loads((tmp_path / "planted.json").read_text())
    small, large = value["levels"]["intra_socket"]["protocols"]
    split = [small, large | {"sender_waits": False}, large | {"min_bytes": 1 << 18, "sender_waits": True}]
    value["levels"]["intra_socket"]["protocols"] = split
    (tmp_path / "planted.json").write_text(json.dumps(value))
    synthetic = ("--launcher", "synthetic:planted.json")
    earlybird("measure", "contention", *synthetic, "-o", "times")
    assumed = earlybird("fit", "times", "-o", "assumed.json")
    assert "earlybird measure completion" in assumed.stderr
    output = [line.split() for line in assumed.stdout.splitlines()]
    assert [arguments[arguments.index("assumed") - 1] for arguments in output if "assumed" in arguments] == [
        "no,",
        "yes,",
    ]

    earlybird("measure", "completion", *synthetic, "-o", "completions")
    result = earlybird("fit", "times", "completions", "-o", "profile.json")
    assert "assumed" not in result.stdout + result.stderr
    fitted = json.loads((tmp_path / "profile.json").read_text())["levels"]["intra_socket"]["protocols"]
    assert [(one["name"], one["sender_waits"]) for one in fitted] == [
        ("eager", False), ("rendezvous", False), ("rendezvous", True),
    ]  # fmt: skip
    assert all(one["sender_waits_measured"] for one in fitted)
    assert 1 << 17 < fitted[2]["min_bytes"] <= 1 << 18
    rows = earlybird("fit", "times", "completions", "-o", "profile.json", "--format", "csv").stdout
    assert [row.split(",")[-3:-1] for row in rows.splitlines()[1:]] == (
        [["false", "true"]] * 6 + [["true", "true"]] * 3
    )


@pytest.mark.thorough
def test_demo_runs_on_the_synthetic_launcher(own_process, tmp_path, planted):
    earlybird = own_process
    result = earlybird("demo", "--launcher", "synthetic:planted.json", "--ranks", "4")
    (folder,) = (tmp_path / "demo-runs").iterdir()
    fitted = json.loads((folder / "profile.json").read_text())["levels"]["intra_socket"]["protocols"]
    assert [one["sender_waits"] for one in fitted] == [one["name"] == "rendezvous" for one in planted]
    assert all(one["sender_waits_measured"] for one in fitted)
    error = json.loads((folder / "replay" / "comparison.json").read_text())["error"]
    # The replay was drawn from the staircase of the planted profile: the fitted one must predict it.
    assert error["staircase"] < 0.05 < min(error["max-rate"], error["postal"])
    for model, value in error.items():
        row = next(line for line in result.stdout.splitlines() if line.split()[:1] == [model])
        assert f" {100 * value:.1f} %" in row
    page = (tmp_path / "report.html").read_text()
    for question in (
        "How was it measured?",
        "What does my exchange cost?",
        "How far off was the prediction?",
    ):
        assert question in page


def test_pipelines_next_to_calibration_samples_do_not_change_the_profile(earlybird, tmp_path, planted):
    synthetic = ("--launcher", "synthetic:planted.json", "--quick", "--quiet")
    earlybird("measure", "contention", "pipeline", *synthetic, "-o", "both")
    (tmp_path / "alone").mkdir()
    for name in ("run.json", "launches.ndjson"):
        shutil.copy(tmp_path / "both" / name, tmp_path / "alone" / name)
    lines = (tmp_path / "both" / "samples.ndjson").read_text().splitlines(keepends=True)
    alone = [line for line in lines if json.loads(line)["kernel"] == "contention"]
    assert 0 < len(alone) < len(lines)
    (tmp_path / "alone" / "samples.ndjson").write_text("".join(alone))
    fitted = []
    for run in ("both", "alone"):
        earlybird("fit", run, "-o", f"{run}.json")
        fitted.append(json.loads((tmp_path / f"{run}.json").read_text())["levels"])
    assert fitted[0] == fitted[1]
    earlybird("report", "both", "-o", "report.html")


def test_one_size_of_pipelines_alone_calibrates_nothing(earlybird, planted, refused):
    synthetic = ("--launcher", "synthetic:planted.json", "--launches", "1")
    earlybird("measure", "pipeline", *synthetic, "--sizes", "8", "-o", "run")
    refused(earlybird("fit", "run", "-o", "profile.json", check=False), "one message size only")


def test_pipelines_alone_come_back_as_they_were_planted_and_are_advised_on(earlybird, tmp_path):
    def form(method, messages, overhead_s):
        protocol = {"latency_s": 1e-6, "overhead_s": overhead_s, "bandwidth_bytes_per_s": 1e10}
        return {
            "what": {"operation": "pipeline", "method": method, "level": "intra_socket", "threads": 1},
            "form": "joined",
            "parameters": {"messages": messages, "protocols": [protocol]},
            "range": {"size_bytes": [1024, 1 << 24], "partitions": [4, 4], "gamma_s_per_byte": [0, 1e-9]},
        }

    level = {"protocols": [{"latency_s": 1e-6, "bandwidth_bytes_per_s": {"1": 1e10}}]}
    planted = {"schema": "earlybird.profile/1", "levels": {"intra_socket": level},
               "forms": [form("single", "one", 0.0), form("many", "each", 5e-7)]}  # fmt: skip
    (tmp_path / "pipelines.json").write_text(json.dumps(planted))
    arguments = ("--launcher", "synthetic:pipelines.json", "--sizes", "1KiB,64KiB,4MiB", "--launches", "3")
    more = ("--partitions", "4,16", "--gamma", "0,250us/MB", "--quiet")
    result = earlybird("measure", "pipeline", *arguments, *more, "-o", "run")
    assert "earlybird fit run" in result.stderr
    fitted = earlybird("fit", "run", "-o", "fitted.json")
    assert re.search(r"intra_socket +many +1 +each +1 ", fitted.stdout)
    assert "earlybird advise pipeline --threads 1 --size 4194304 --gamma 250us/MB" in fitted.stderr
    asked = ("--size", "4MiB", "--partitions", "16", "--gamma", "250us/MB", "--json")
    first, again = (
        json.loads(earlybird("predict", "pipeline", *asked, "--profile", profile).stdout)["methods"]
        for profile in ("pipelines.json", "fitted.json")
    )
    times_s = [{method["method"]: method["time_s"] for method in methods} for methods in (first, again)]
    for method in ("single", "many"):
        assert times_s[1][method] == pytest.approx(times_s[0][method], rel=0.03)
    asked = ("--threads", "4", "--size", "4MiB", "--gamma", "250us/MB", "--profile", "fitted.json", "--json")
    advice = json.loads(earlybird("advise", "pipeline", *asked).stdout)
    assert advice["ranked"][0]["method"] == "many" and advice["ranked"][0]["speed_up"] > 2
    assert [one["method"] for one in advice["size_ranges"]] == ["single", "many"]


def test_resume_measures_only_what_is_missing(earlybird, tmp_path, planted):
    arguments = (
        "measure",
        "pingpong",
        "--launcher",
        "synthetic:planted.json",
        "--launches",
        "3",
        "--sizes",
        "8,1KiB",
    )
    earlybird(*arguments, "-o", "run")
    samples = tmp_path / "run" / "samples.ndjson"
    lines = samples.read_text().splitlines(keepends=True)
    samples.write_text("".join(lines[:3]) + lines[3][:40])  # killed while the fourth was written
    earlybird("measure", "--resume", "-o", "run")
    resumed = samples.read_text().splitlines(keepends=True)
    assert resumed[:3] == lines[:3]
    assert sorted(json.loads(line)["config"]["size_bytes"] for line in resumed) == [8, 8, 8, 1024, 1024, 1024]
    before = samples.read_bytes()
    earlybird("measure", "--resume", "-o", "run")
    assert samples.read_bytes() == before


def test_a_run_folder_that_exists_is_left_alone(earlybird, tmp_path, planted, refused):
    (tmp_path / "run").mkdir()
    arguments = ("measure", "pingpong", "--launcher", "synthetic:planted.json", "-o", "run")
    refused(earlybird(*arguments, check=False), "run exists", "choose another name")
    assert list((tmp_path / "run").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["measure", "pingpogn"], "pingpogn"),
        (["measure", "exchange"], "earlybird replay"),
        (["measure", "pingpong", "contention", "--sizes", "8"], "--sizes"),
        (["measure", "pingpong", "--competitors", "2"], "--competitors"),
        (["measure", "pingpong", "--sizes", "8,many"], "many"),
        (["measure", "pingpong", "--sizes", "4GiB"], "2147483647"),
        (["measure", "pingpong", "--budget", "soon"], "soon"),
        (["measure", "pingpong", "--launches", "0"], "--launches"),
        (["measure", "pingpong", "--format", "xml"], "xml"),
        (["measure", "pingpong", "--buffers", "cold"], "cold"),
        (["measure", "pingpong", "--levels", "inter_rack"], "inter_rack"),
        (["measure", "contention", "--competitors", "3"], "3"),
        (["measure", "contention", "--competitors", "two"], "two"),
        (["measure", "pipeline", "--partitions", "0"], "--partitions has '0'"),
        (["measure", "pipeline", "--partitions", "-4"], "--partitions has '-4'"),
        (["measure", "pipeline", "--sizes", "21"], "21 bytes, which 4 partitions"),
        (["measure", "pipeline", "--gamma", "-1us/MB"], "--gamma is '-1us/MB'"),
        (["measure", "pipeline", "--gamma", "100us"], "--gamma is '100us'"),
        (["measure", "pipeline", "--gamma", "100"], "100 s/B"),
        (["measure", "pipeline", "--threads", "0"], "--threads has '0'"),
        (["measure", "pipeline", "--methods", "many,pigeon"], "--methods has 'pigeon'; the methods are"),
        (["measure", "pipeline", "--methods", "earlybird:much"], "--methods has earlybird:much"),
        (["measure", "pipeline", "--vcis", "0"], "--vcis has '0'"),
        (["measure", "pipeline", "--gamma", "0", "--ai", "5"], "--gamma and --ai"),
        (["measure", "pingpong", "--gamma", "1us/MB"], "--gamma"),
        (["measure", "pipeline", "pingpong", "--partitions", "4"], "--partitions is an option of pipeline"),
        (["measure", "--resume"], "-o"),
        (["measure", "pingpong", "--no-such-option"], "--no-such-option"),
        (["replay"], "pattern"),
        (["demo", "--ranks", "1"], "--ranks"),
    ],
)
def test_wrong_words_are_refused_in_one_sentence(earlybird, tmp_path, planted, refused, arguments, named):
    if arguments[0] in ("measure", "demo") and "--resume" not in arguments:
        arguments = [*arguments, "--launcher", "synthetic:planted.json"]
    refused(earlybird(*arguments, check=False), named)
    assert [path.name for path in tmp_path.iterdir()] == ["planted.json"]


def test_a_launcher_that_is_not_there_is_named(earlybird, planted, refused):
    refused(earlybird("measure", "pingpong", "--launcher", "cluster:c1", check=False), "c1", "cluster up")
    refused(earlybird("measure", "pingpong", "--launcher", "telepathy", check=False), "telepathy")
    refused(earlybird("measure", "pingpong", "--launcher", "synthetic:none.json", check=False), "none.json")
    refused(earlybird("measure", "pingpong", "--mpi", "lam", check=False), "lam", "mpich")


def test_a_file_that_may_not_grow_ends_the_command_and_keeps_whole_lines(
    own_process, earlybird, tmp_path, planted, refused
):
    """RLIMIT_FSIZE stands in for a full disk: a write comes back short, then fails."""
    import resource

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    arguments = ("measure", "pingpong", "--launcher", "synthetic:planted.json", "-o", "run")
    result = own_process(*arguments, check=False, preexec_fn=limit)
    refused(result, "samples.ndjson", "free some space", status=1)
    text = (tmp_path / "run" / "samples.ndjson").read_text()
    assert text.endswith("\n") or text == ""
    assert all(json.loads(line) for line in text.splitlines())
    earlybird("measure", "--resume", "-o", "run")


def _replay(*more: str) -> tuple[str, ...]:
    return ("replay", *more, "--launcher", "synthetic:planted.json")


def test_a_resumed_replay_keeps_the_layout_it_was_begun_with(earlybird, tmp_path, planted):
    (tmp_path / "pattern.csv").write_text("src,dst,bytes\n0,1,100\n")
    (tmp_path / "läyout.csv").write_text("rank,node,socket\n0,0,0\n1,0,0\n")
    earlybird(*_replay("pattern.csv", "--layout", "läyout.csv", "--launches", "2", "-o", "run"))
    (tmp_path / "läyout.csv").write_text("rank,node,socket\n0,0,0\n1,0,0\n2,0,0\n")
    earlybird("replay", "--resume", "-o", "run", "--launches", "3")
    samples = [json.loads(line) for line in (tmp_path / "run" / "samples.ndjson").read_text().splitlines()]
    assert [len(sample["rank_times_s"][0]) for sample in samples] == [2, 2, 2]


def test_more_launches_may_be_asked_of_a_resumed_run(earlybird, tmp_path, planted):
    arguments = ("measure", "pingpong", "--launcher", "synthetic:planted.json", "--sizes", "8", "-o", "run")
    earlybird(*arguments, "--launches", "2")
    earlybird("measure", "--resume", "-o", "run", "--launches", "4")
    assert len((tmp_path / "run" / "samples.ndjson").read_text().splitlines()) == 4


def test_two_sessions_do_not_measure_into_one_run(earlybird, tmp_path, planted, refused):
    import fcntl

    arguments = ("measure", "pingpong", "--launcher", "synthetic:planted.json", "--sizes", "8", "-o", "run")
    earlybird(*arguments, "--launches", "2")
    before = (tmp_path / "run" / "samples.ndjson").read_bytes()
    with open(tmp_path / "run" / "run.json") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        result = earlybird("measure", "--resume", "-o", "run", "--launches", "4", check=False)
    refused(result, "another earlybird", "run")
    assert (tmp_path / "run" / "samples.ndjson").read_bytes() == before
