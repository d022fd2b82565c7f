"""The fuzz targets of formats: originals are accepted, inputs are judged, and those that fail are kept."""

import os
import signal
import sys
from random import Random

import pytest

from tools.fuzzing import formats, inputs, mutations, trial
from tools.fuzzing.formats import Format


def trial_of(**changes):
    given = dict(status=0, signal=0, seconds=0.1, peak_bytes=0, stdout=b"", stderr=b"", left=())
    return trial.Trial(**(given | changes))


@pytest.mark.parametrize("name", ["advice", "layout"])
def test_a_target_accepts_its_original_and_runs_inputs(tmp_path, name):
    tally = inputs.run_target(name, 0, tmp_path, most=3)
    assert tally.inputs == 3
    assert not any("original" in kind for kind in tally.failures)


def test_every_golden_file_is_in_a_target():
    text = (formats.ROOT / "tools" / "fuzzing" / "formats.py").read_text()
    names = [path.stem for path in formats.GOLDEN.iterdir()]
    assert [name for name in names if name not in text and f'"{name.removesuffix("-1")}"' not in text] == []


@pytest.mark.parametrize(
    "content", [b'{"a": [1, {"b": "x"}]}', b'{"a": 1}\n{"a": 2}\n', b"a,b\n1,2\n", b"", b"\xff\0"]
)
def test_the_same_seed_gives_the_same_input(content):
    files = {"file": content}
    for number in range(60):
        first, second = (mutations.mutate(files, ("file",), Random(number)) for _ in range(2))
        assert first == second


def broken(monkeypatch, tmp_path, action):
    """What the harness reports of a command that performs `action`, with the input it keeps."""
    monkeypatch.setattr(trial.main, "run", action)
    monkeypatch.setattr(trial, "MAX_BYTES", 64 << 20)
    monkeypatch.setitem(formats.FORMATS, "broken", Format(formats.text(some_txt="1\n"), ("show some.txt",)))
    tally = inputs.Tally("broken")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    inputs._try({"some.txt": b"1\n"}, {}, ("show", "some.txt"), "", scratch, tmp_path / "found", tally)
    return next(iter(tally.failures), ""), tmp_path / "found"


def fail():
    raise ValueError("no such thing")


def refuse():
    print("earlybird: give another", file=sys.stderr)
    sys.exit(2)


def write_and_refuse():
    open("half", "w").close()
    refuse()


def kill():
    os.kill(os.getpid(), signal.SIGSYS)


def take_memory():
    assert len(bytearray(b"x") * (256 << 20))


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (fail, "internal error"), (write_and_refuse, "left half"), (kill, "signal (SIGSYS"),
        (take_memory, "memory"), (lambda: print("\x1b[31m"), "the character U+001B on stdout"),
        (lambda: sys.exit(1), "status 1"), (lambda: sys.exit(2), "0 sentences of a refusal"),
    ],
)  # fmt: skip
def test_a_failure_is_named_and_its_input_kept(monkeypatch, tmp_path, action, expected):
    kind, found = broken(monkeypatch, tmp_path, action)
    assert kind.startswith(expected)
    assert (found / "input" / "some.txt").read_bytes() == b"1\n"
    assert "earlybird show some.txt" in (found / "command.txt").read_text()


def test_a_refusal_is_no_failure(monkeypatch, tmp_path):
    kind, found = broken(monkeypatch, tmp_path, refuse)
    assert not kind and not found.exists()


@pytest.mark.parametrize(
    ("stdout", "wrong"),
    [
        (b'{"time_s": NaN}', "NaN in JSON"), (b'{"time_s": [1, -1]}', "time_s is -1"),
        (b'{"saved_s": -1}', ""), (b'{"time_s": 1e308}', "time_s is 1e+308"),
        (b'{"rank": 4611686018427387904}', "rank is"), (b"{", "no JSON"),
    ],
)  # fmt: skip
def test_values_out_of_range_are_failures(stdout, wrong):
    found = trial.judge(trial_of(stdout=stdout), ("show", "x", "--json"), 0)
    assert (wrong in found[0]) if wrong else not found
