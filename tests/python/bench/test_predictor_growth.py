"""Growth of predictions: every size has a row, the plot a curve of each kind, at the right places."""

import re
import xml.etree.ElementTree as ET

import pytest

from bench import predictor_growth
from bench.log_plot import Curve, log_plot
from bench.predictor_growth import Row, plot, table

ROWS = [
    Row(64, 20, 1280, {"staircase": 1e-3, "fair": 2e-3}, 1.5, 0.25),
    Row(128, 20, 2560, {"staircase": 2e-3, "fair": 4e-3}),
    Row(128, 335, 42880, {"staircase": 3e-2, "fair": 5e-2}),
]


def test_points_are_where_the_logarithms_are():
    svg = log_plot({"a < b": Curve([(1, 1), (10, 10), (100, 100)], "red")}, "x", "y")
    places = re.search(r'polyline points="(\S+) (\S+) (\S+)"', svg).groups()
    first, middle, last = ([float(value) for value in place.split(",")] for place in places)
    assert middle == pytest.approx([(a + b) / 2 for a, b in zip(first, last, strict=True)], abs=0.1)
    assert last[0] > first[0] and last[1] < first[1]
    assert "a < b" in [text.text for text in ET.fromstring(svg).iter() if text.text]


def test_equal_times_have_an_axis_and_one_x_has_none():
    assert "polyline" in log_plot({"a": Curve([(1, 1), (2, 1)], "red")}, "x", "y")
    with pytest.raises(ValueError, match="two different x"):
        log_plot({"a": Curve([(1, 1), (1, 2)], "red")}, "x", "y")


def test_what_was_not_simulated_is_empty_in_the_table_and_has_no_curve():
    first, second, dense = table(ROWS).splitlines()[-3:]
    assert first.split() == ["64", "1280", "1", "ms", "2", "ms", "1.5", "s", "250", "ms"]
    assert second.split() == ["128", "2560", "2", "ms", "4", "ms"] and dense.split()[1] == "42880"
    names = re.findall(r">(\w+), (\d+) per rank<", plot(ROWS))
    kinds = ["staircase", "fair", "SimGrid"]
    assert names == [(kind, "20") for kind in kinds] + [(kind, "335") for kind in kinds[:2]]


def test_table_and_plot_are_saved_without_simgrid_too(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(predictor_growth, "_simgrid_is_built", lambda: False)
    assert predictor_growth.main(["--most-ranks", "128", "--save", str(tmp_path)]) == 0
    text = (tmp_path / "predictor-growth.txt").read_text()
    assert capsys.readouterr().out == text
    assert [line.split()[:2] for line in text.splitlines()[-2:]] == [["64", "1280"], ["128", "2560"]]
    ET.parse(tmp_path / "predictor-growth.svg")


@pytest.mark.parametrize("arguments", [["--most-ranks", "64"], ["--save", "missing/folder"]])
def test_bad_options_are_refused_before_measuring(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        predictor_growth.main(arguments)
    assert arguments[0] in capsys.readouterr().err
