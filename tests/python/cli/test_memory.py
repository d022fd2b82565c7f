"""Patterns that do not fit into memory are refused before they are read."""

import numpy as np
import pytest

from earlybird.data import memory
from earlybird.data.errors import InputError
from earlybird.data.pattern import Pattern, load_fitting_pattern, save_pattern
from earlybird.data.run import Run


@pytest.mark.parametrize("name", ["exchange.npz", "exchange.csv", "exchange.mtx"])
def test_more_messages_than_memory_are_refused_with_what_they_take(tmp_path, monkeypatch, name):
    path = tmp_path / name
    save_pattern(Pattern(np.zeros(5000, np.int64), np.ones(5000, np.int64), np.full(5000, 8)), path)
    monkeypatch.setattr(memory, "available_memory_bytes", lambda: 1 << 20)
    with pytest.raises(InputError, match=r"has 500\d messages, which take about 1.91 MiB .* 1 MiB are"):
        load_fitting_pattern(path)
    monkeypatch.setattr(memory, "available_memory_bytes", lambda: 1 << 22)
    assert load_fitting_pattern(path).num_messages == 5000


@pytest.mark.parametrize(
    ("arguments", "takes"),
    [
        (("random", "--ranks", 4, "--messages", 40_000), "40000 messages, which take about 4.2 MiB"),
        (("near", "--ranks", 4000, "--per-rank", 10), "40000 messages, which take about 4.2 MiB"),
        (("halo", "--grid", "20x20x100"), "231200 messages, which take about 24.3 MiB"),
        (("mesh", "--parts", 2, "--cells", 5000), "5000 cells, which take about 4.29 MiB"),
    ],
)
def test_what_takes_more_memory_than_there_is_is_not_generated(
    tmp_path, run_main, monkeypatch, arguments, takes
):
    monkeypatch.setattr(memory, "available_memory_bytes", lambda: 1 << 22)
    status, _, err = run_main("pattern", *arguments, "-o", tmp_path / "p.csv")
    assert (status, err.count("\n"), list(tmp_path.iterdir())) == (2, 1, [])
    fitting = (1 << 22) // (900 if "mesh" in arguments else 110)
    allowed = {
        "halo": f"{fitting} fit; give a smaller process grid",
        "near": f"{fitting} fit; give fewer ranks or fewer messages per rank",
    }.get(arguments[0], f"give at most {fitting}")
    assert f"would have {takes} of memory, and 4 MiB are available; {allowed}\n" in err


def test_a_limit_that_is_not_of_the_memory_is_stated_with_what_it_takes(tmp_path, run_main, monkeypatch):
    monkeypatch.setattr(memory, "available_memory_bytes", lambda: 1 << 40)
    status, _, err = run_main(
        "pattern", "random", "--ranks", 4, "--messages", 10**8, "-o", tmp_path / "p.csv"
    )
    assert status == 2
    assert (
        "which take about 10.2 GiB of memory, and 1 TiB are available; at most 50000000 are supported" in err
    )


def test_a_file_that_is_no_pattern_is_refused_as_always(tmp_path):
    (tmp_path / "broken.npz").write_bytes(b"PK no archive")
    for name, expected in (("broken.npz", "not a readable"), ("missing.csv", "does not exist")):
        with pytest.raises(InputError, match=expected):
            load_fitting_pattern(tmp_path / name)


@pytest.mark.parametrize("name", ["pattern.npz", "replay/pattern.npz"])
def test_the_report_refuses_more_messages_than_memory_before_it_reads_them(
    in_process, tmp_path, monkeypatch, name
):
    if name.startswith("replay"):
        Run.create(tmp_path / "replay", machine={}, command=[], seed=1)
    exchange = Pattern(np.zeros(5000, np.int64), np.ones(5000, np.int64), np.full(5000, 8))
    save_pattern(exchange, tmp_path / name)
    monkeypatch.setattr(memory, "available_memory_bytes", lambda: 1 << 20)
    refused = in_process("report", name.partition("/")[0], "-o", "page.html", check=False)
    assert refused.returncode == 2 and f"{name} has 5000 messages" in refused.stderr
    assert refused.stderr.count("\n") == 1 and not (tmp_path / "page.html").exists()
