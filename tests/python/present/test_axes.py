"""Axes have readable ticks for sizes, times, counts and errors."""

import math

import pytest

from earlybird.present.core import axes


def test_size_axis_has_binary_ticks_and_a_tick_for_0_bytes():
    axis = axes.size_axis([0, 1, 1 << 20])
    assert axis["ticktext"] == ["0 B", "32 B", "1 KiB", "32 KiB", "1 MiB"]
    assert axis["tickvals"][0] == axes.ZERO_BYTES_AT
    assert axis["range"][0] < math.log10(axes.ZERO_BYTES_AT)


def test_time_axis_has_one_tick_per_decade():
    assert {"1 us", "10 us", "100 us", "1 ms"} <= set(axes.log_time_axis([1e-6, 1e-3], "time")["ticktext"])


@pytest.mark.parametrize("maximum_s", [3e-9, 4.2e-6, 1e-3, 0.97, 30.0, 0.0])
def test_linear_axis_has_readable_ticks_from_zero(maximum_s):
    axis = axes.linear_time_axis(maximum_s, "time")
    assert axis["tickvals"][0] == 0 and axis["ticktext"][0] == "0"
    assert 4 <= len(axis["tickvals"]) <= 12
    assert len(set(axis["ticktext"])) == len(axis["ticktext"])


def test_models_and_flavours_never_share_a_colour():
    names = list(axes.PALETTE)
    assert len({axes.PALETTE[name][0] for name in names}) == len(names)
    assert len({axes.PALETTE[name][1] for name in names}) == len(names)


def test_text_in_figures_cannot_become_a_tag():
    assert axes.label("<a href='x'>&") == "&lt;a href='x'&gt;&amp;"


def test_percent_axis_has_ticks_around_zero():
    axis = axes.percent_axis([-0.3, 0.85], "error")
    assert {"0 %", "-20 %", "+80 %"} <= set(axis["ticktext"]) and 5 <= len(axis["tickvals"]) <= 13
    assert axis["range"][0] < -0.3 and axis["range"][1] > 0.85
    assert "0 %" in axes.percent_axis([], "error")["ticktext"]


def test_count_axis_labels_powers_of_two_if_there_are_many_counts():
    assert axes.log_count_axis([2, 3, 5], "ranks")["ticktext"] == ["2", "3", "5"]
    assert axes.log_count_axis(range(2, 257), "ranks")["ticktext"] == [str(1 << k) for k in range(1, 9)]
    assert 1 < len(axes.log_count_axis(range(3, 60, 4), "ranks")["tickvals"]) <= axes.MAX_COUNTS


def test_own_algorithms_share_the_colour_and_have_open_markers():
    assert axes.color("own-pipeline:8192") == axes.color("pipeline") != axes.color("linear")
    assert axes.symbol("own-binomial") == axes.symbol("binomial") + "-open"
    assert axes.dash("pipeline:0") == axes.dash("pipeline") == "solid"
    assert axes.dash("pipeline:8192") != axes.dash("pipeline:65536") != "solid"


def test_ratios_close_to_each_other_have_decimal_ticks():
    assert axes.ratio_axis([0.9, 1.3], "speed-up")["ticktext"] == [
        "0.7",
        "0.8",
        "0.9",
        "1",
        "1.1",
        "1.2",
        "1.3",
        "1.4",
    ]
    assert {"1/2", "1", "2", "5"} <= set(axes.ratio_axis([0.3, 6.0], "speed-up")["ticktext"])
