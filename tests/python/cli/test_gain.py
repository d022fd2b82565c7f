"""`earlybird gain`: published figures and refused input."""

import functools
import json
import re

import pytest

STENCIL = ["--ai", "1/13", "--ci", str((66 / 64) ** 3 - 1), "--epsilon", "0.04", "--delta", "0.5"]


@pytest.fixture
def gain(run_main):
    """Run `earlybird gain`; returns (exit status, stdout, stderr)."""
    return functools.partial(run_main, "gain")


@pytest.mark.parametrize(
    ("arguments", "eta", "gamma_us_per_mb"),
    [
        (["--theta", 8, "--bandwidth", "25GB/s", "--gamma", "1000us/MB"], 1.6410, 1000),
        (["--theta", 1, "--bandwidth", "200gbit", "--gamma", "1e-11"], 1.0323, 10),
        (
            [
                "--theta",
                8,
                "--bandwidth",
                "25GB/s",
                "--frequency",
                "3.5GHz",
                "--ai",
                5,
                "--ci",
                1,
                "--epsilon",
                0.04,
            ],
            1.9748,
            1263.67,
        ),
        (["--theta", 2, "--bandwidth", "50GB/s", "--frequency", "3.5GHz", *STENCIL], 1.1718, 46.92385411),
        (["--theta", 2, "--bandwidth", "25GB/s", "--frequency", "3.5GHz", *STENCIL], 1.0791, 46.92385411),
    ],
)
def test_published_gains(gain, arguments, eta, gamma_us_per_mb):
    status, out, _ = gain("--threads", 8, *arguments, "--json")
    value = json.loads(out)
    assert status == 0
    assert set(value) == {"eta", "eta_max", "eta_small", "gamma_s_per_byte"}
    assert value["eta"] == pytest.approx(eta, rel=1e-4)
    assert value["gamma_s_per_byte"] == pytest.approx(gamma_us_per_mb * 1e-12, rel=1e-4)


def test_size_is_the_whole_buffer(gain):
    arguments = [
        "--threads",
        8,
        "--theta",
        8,
        "--bandwidth",
        "25GB/s",
        "--gamma",
        "1000us/MB",
        "--size",
        "64MiB",
    ]
    value = json.loads(gain(*arguments, "--json")[1])
    assert value["bulk_s"] == pytest.approx(64 * 2**20 / 25e9)
    # A partition is 1 MiB; 63 of them travel while the last is delayed by 1e-9 s/B.
    assert value["pipelined_s"] == pytest.approx(64 * 2**20 / 25e9 - 1e-9 * 2**20)
    assert value["bulk_s"] / value["pipelined_s"] == pytest.approx(value["eta"])


def test_one_partition_gains_nothing(gain):
    assert json.loads(gain("--bandwidth", "1GB/s", "--gamma", "5us/MB", "--json")[1])["eta"] == 1


def test_table_and_csv(gain):
    arguments = ["--threads", 8, "--theta", 8, "--bandwidth", "25GB/s", "--gamma", "1000us/MB"]
    head, row = gain(*arguments)[1].splitlines()
    assert re.split("  +", head.strip()) == ["delay rate", "ideal speed-up", "at most", "small messages"]
    assert re.split("  +", row.strip()) == ["1000 us/MB", "1.6410", "64", "0.01562"]
    csv = gain(*arguments, "--format", "csv")[1]
    assert csv.startswith("eta,eta_max,eta_small,gamma_s_per_byte\n1.641")
    assert csv.splitlines()[1].split(",")[1:3] == ["64.0", "0.015625"]


@pytest.mark.parametrize(("gamma", "eta"), [("0us/MB", 1), ("1s/MB", 16)])
def test_the_gain_stays_within_its_bounds(gain, gamma, eta):
    value = json.loads(
        gain("--threads", 8, "--theta", 2, "--bandwidth", "25GB/s", "--gamma", gamma, "--json")[1]
    )
    assert (value["eta"], value["eta_max"], value["eta_small"]) == (eta, 16, 1 / 16)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gamma", "1us/MB"], "missing option '--bandwidth'"),
        (["--bandwidth", "1GB/s"], "the delay rate is unknown; give --gamma, or --ai"),
        (["--bandwidth", "1GB/s", "--ai", "5"], "the delay rate needs --ci, --frequency;"),
        (
            ["--bandwidth", "1GB/s", "--gamma", "1", "--delta", "0"],
            "--gamma and --delta both set the delay rate",
        ),
        (["--bandwidth", "1GB/s", "--gamma", "fast"], "--gamma is 'fast'"),
        (["--bandwidth", "1GHz", "--gamma", "1"], "'1GHz'"),
        (["--bandwidth", "1GB/s", "--gamma", "1", "--threads", "0"], "'--threads': 0 is not 1 or more"),
        (["--bandwidth", "1GB/s", "--gamma", "1", "--size", "-4"], "--size is '-4'"),
        (["--bandwidth", "1GB/s", "--ai", "1", "--ci", "1e-308", "--frequency", "1GHz"], "--ci is '1e-308'"),
        (["--bandwidth", "1GB/s", "--ai", "1e9", "--ci", "1", "--frequency", "1GHz"], "--ai is '1e9'"),
        (["--bandwidth", "1GB/s", "--ai", "1", "--ci", "1", "--frequency", "1e-300"], "--frequency is "),
        (
            ["--bandwidth", "1GB/s", "--ai", "1", "--ci", "1", "--frequency", "1GHz", "--delta", "1e300"],
            "--delta is 1e+300",
        ),
        (["--bandwidth", "1GB/s", "--ai", "1/0", "--ci", "1", "--frequency", "1GHz"], "--ai is '1/0'"),
        (
            ["--bandwidth", "1GB/s", "--ai", "1", "--ci", "1", "--frequency", "1GHz", "--epsilon", "-1"],
            "--epsilon is -1.0; give 0 or more",
        ),
        (["--bandwidth", "1GB/s", "--gamma", "1", "--theta", "many"], "--theta"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_2(gain, arguments, message):
    status, out, err = gain(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("earlybird: ") and err.count("\n") == 1
    assert re.search(re.escape(message), err)
