"""`earlybird predict pipeline` and `earlybird advise pipeline` from the command line."""

import csv
import io
import json
import re

import pytest

from earlybird.data.advice import advice_from_json

PROTOCOL = {"latency_s": 1e-6, "overhead_s": 1e-6, "bandwidth_bytes_per_s": 1e10}
LEVEL = {"protocols": [{"latency_s": 1e-6, "bandwidth_bytes_per_s": {"1": 1e10}}]}


def form(method, messages):
    return {
        "what": {"operation": "pipeline", "method": method, "level": "intra_socket", "threads": 8},
        "form": "joined",
        "parameters": {"messages": messages, "protocols": [PROTOCOL]},
        "range": {"size_bytes": [512, 1 << 26], "partitions": [8, 64], "gamma_s_per_byte": [0, 1e-9]},
        "replicates": [{"messages": messages, "protocols": [PROTOCOL]}] * 2,
    }


@pytest.fixture
def earlybird(monkeypatch, run_main, tmp_path):
    """Run the command in a folder with a profile `p.json`; returns (exit status, stdout, stderr)."""
    profile = {"schema": "earlybird.profile/1", "id": "p", "levels": {"intra_socket": LEVEL},
               "forms": [form("single", "one"), form("many", "each")]}  # fmt: skip
    (tmp_path / "p.json").write_text(json.dumps(profile))
    monkeypatch.chdir(tmp_path)
    return run_main


COMMON = ["--threads", 8, "--size", "64MiB", "--gamma", "100us/MB", "--profile", "p.json"]


def test_predict_pipeline_gives_seconds_and_speed_up_of_every_method(earlybird):
    status, out, err = earlybird("predict", "pipeline", *COMMON, "--partitions", 64, "--json")
    value = json.loads(out)
    assert (status, value["schema"]) == (0, "earlybird.pipeline-prediction/1")
    assert value["delay_s"] == pytest.approx(100e-12 * 2**20)
    methods = {method["method"]: method for method in value["methods"]}
    bulk_s = 2e-6 + 2**26 / 1e10
    assert methods["single"]["time_s"] == pytest.approx(bulk_s)
    assert methods["many"]["time_s"] == pytest.approx(1e-6 + 64e-6 + 2**26 / 1e10 - 100e-12 * 2**20)
    assert methods["many"]["speed_up"] == pytest.approx(bulk_s / methods["many"]["time_s"])
    assert methods["many"]["speed_up_interval"] == pytest.approx([methods["many"]["speed_up"]] * 2)
    assert (methods["single"]["source"], methods["earlybird"]["source"]) == ("pipeline fit", "levels")
    assert "not measured as pipelines: earlybird" in err
    assert "copy through memory" in err


def test_predict_pipeline_of_one_method_as_table_and_csv(earlybird):
    arguments = ["predict", "pipeline", *COMMON, "--method", "many"]
    _, out, err = earlybird(*arguments)
    assert out.splitlines()[1].split()[0] == "many" and "8 of 8 MiB" not in out
    assert "64 MiB in 8 partitions, 8 threads" in err and "not measured" not in err
    (row,) = csv.DictReader(io.StringIO(earlybird(*arguments, "--format", "csv")[1]))
    assert (row["method"], row["messages"], row["message_bytes"]) == ("many", "8", str(1 << 23))
    assert float(row["speed_up_low"]) == pytest.approx(float(row["speed_up"]))


def test_advise_pipeline_ranks_methods_and_lists_crossovers(earlybird):
    status, out, _ = earlybird("advise", "pipeline", *COMMON)
    lines = out.splitlines()
    assert status == 0 and lines[2].split()[:4] == ["1", "message", "per", "partition"]
    assert any(line.startswith("1. one persistent message per partition") for line in lines)
    assert lines[-1].split()[0] != "512" and re.search(r"512 B +\S+ \S+ +single message", out)
    assert "64 MiB, 8 threads" in lines[0] and max(map(len, lines[1:5])) <= 100


def test_advise_pipeline_as_json_is_advice(earlybird):
    value = json.loads(earlybird("advise", "pipeline", *COMMON, "--json")[1])
    advice = advice_from_json(value)
    assert value["asked"] == {
        "level": "intra_socket",
        "threads": 8,
        "size_bytes": 1 << 26,
        "gamma": "100us/MB",
    }
    assert advice.ranked[0].method == "many" and advice.ranked[0].speed_up.value > 1
    assert advice.size_ranges[0].from_bytes == 512


def test_the_delay_rate_follows_from_the_computation(earlybird):
    arguments = ["--threads", 8, "--size", "64MiB", "--profile", "p.json", "--ai", 5, "--ci", 1,
             "--frequency", "3.5GHz", "--epsilon", 0.04]  # fmt: skip
    value = json.loads(earlybird("predict", "pipeline", *arguments, "--partitions", 64, "--json")[1])
    assert value["gamma_s_per_byte"] == pytest.approx(1263.67e-12, rel=1e-4)
    advice = json.loads(earlybird("advise", "pipeline", *arguments, "--json")[1])
    assert advice["ranked"][0]["partitions"] > 8


@pytest.mark.parametrize("command", ["predict", "advise"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--threads", 0], "'--threads': 0 is not 1 or more"),
        (["--size", "9"], "9 bytes, which is not divisible into 8 partitions"),
        (["--size", "0"], "--size is 0 bytes"),
        (["--size", "big"], "--size is 'big'"),
        (["--gamma", "fast"], "--gamma is 'fast'"),
        (["--gamma", "100"], "makes a partition of 8388608 bytes 8.38861e+08 s late"),
        (["--ai", "5"], "--gamma and --ai both set the delay rate"),
        (["--level", "inter_node"], "has no level inter_node"),
        (["--profile", "nowhere.json"], "nowhere.json does not exist"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_2(earlybird, command, arguments, message):
    status, out, err = earlybird(command, "pipeline", *COMMON, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("earlybird: ") and err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--partitions", 12], "give a multiple of 8"),
        (["--partitions", 0], "--partitions is 0"),
        (["--method", "pigeon"], "the profile contains single, earlybird, many"),
    ],
)
def test_wrong_partitions_and_methods_are_refused(earlybird, arguments, message):
    status, _, err = earlybird("predict", "pipeline", *COMMON, *arguments)
    assert status == 2 and message in err and err.count("\n") == 1


@pytest.mark.parametrize("command", ["predict", "advise"])
def test_a_missing_profile_or_gamma_is_reported(earlybird, command):
    assert "add --profile" in earlybird(command, "pipeline", "--size", "8")[2]
    assert "give --gamma" in earlybird(command, "pipeline", "--size", "8", "--profile", "p.json")[2]


def test_advise_without_a_subcommand_lists_them(earlybird):
    status, out, _ = earlybird("advise")
    assert status == 0 and "pipeline" in out
