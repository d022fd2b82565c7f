"""The request of a kernel is checked before MPI starts: errors name key, value and what is allowed."""

import json
import subprocess

import pytest

from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import kernel_path

pytestmark = pytest.mark.mpi

POINT = {"size_bytes": 8, "buffers": "vary"}


def refused(mpi, folder, *arguments):
    flavour = find_flavour(mpi)
    done = subprocess.run(
        [kernel_path(flavour, "pingpong"), *arguments],
        env=flavour.environment(), cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    return sentence


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"threads": 0}, "threads=0; give an integer from 1 to 1024"),
        ({"threads": 2.5}, "threads=2.5; give an integer from 1 to 1024"),
        ({"threads": "two"}, 'threads="two"; give an integer'),
        ({"threads": 10**30}, "give an integer from 1 to 1024"),
        ({"target": "2 %"}, 'target="2 %"; give a number above 0'),
        ({"budget_s": 0}, "budget_s=0; give a number above 0"),
        ({"min_iterations": -1}, "min_iterations=-1; give an integer from 1"),
        ({"mode": "mean"}, 'mode="mean"; give median or paper'),
        ({"methods": "single"}, 'methods="single"; give a list of texts'),
        ({"out": ""}, 'out=""; give text'),
        ({"out": None}, "has no out"),
        ({"budget": 1}, "has the unknown key budget"),
        ({"control_variables": {"m": {}}}, "has the method m, which is not in methods"),
        ({"methods": ["m"], "control_variables": {"m": {"calls": {}}}}, "has the unknown key calls"),
        (
            {"methods": ["m"], "control_variables": {"m": {"call": {"a": 1}}}},
            'call={"a":1}; give a JSON object',
        ),
    ],
)
def test_an_option_that_makes_no_sense_is_named(any_mpi, tmp_path, options, says):
    request = {"options": {"out": "out"} | options, "points": [POINT]}
    (tmp_path / "request.json").write_text(json.dumps(request))
    assert says in refused(any_mpi, tmp_path, "request.json")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "request.json is not JSON: parse error at line 1"),
        ("{}", "options of the request is null; give a JSON object"),
        ('{"options": {"out": "out"}}', "points=null; give a list of points"),
        ('{"options": {"out": "out"}, "points": [3]}', "points[0] of the request is 3; give a JSON object"),
        (
            '{"options": {"out": "out"}, "points": [{}, {"size_bytes": [1]}]}',
            "points[1] of the request has size_bytes=[1]; give a number or text",
        ),
        ('{"options": {"out": "out"}, "points": [], "plan": 1}', "the unknown key plan"),
        ('{"options": {"out": "out"}, "points": [{"x": 99999999999999999999}]} x', "not JSON"),
    ],
)
def test_a_file_that_is_no_request_is_refused(any_mpi, tmp_path, text, says):
    (tmp_path / "request.json").write_text(text)
    assert says in refused(any_mpi, tmp_path, "request.json")


def test_a_kernel_takes_one_file_that_exists(any_mpi, tmp_path):
    assert "give one argument" in refused(any_mpi, tmp_path)
    assert "cannot read the request absent.json" in refused(any_mpi, tmp_path, "absent.json")


def test_ranks_that_did_not_find_each_other_measure_nothing(any_mpi, tmp_path):
    """Without a process manager each is alone; the first one says so, whatever the kernel needs."""
    flavour = find_flavour(any_mpi)
    (tmp_path / "request.json").write_text(
        json.dumps({"options": {"out": "out", "ranks": 2}, "points": [POINT]})
    )
    for kernel in ("pingpong", "collective", "check", "exchange"):
        done = subprocess.run(
            [kernel_path(flavour, kernel), "request.json"],
            env=flavour.environment(), cwd=tmp_path, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert "the launch has 2 ranks, but this one is in a world of 1: " in done.stderr
        assert done.returncode != 0 and not (tmp_path / "out").exists()
