"""Quantities as people type them, and text that only looks like one."""

import pytest

from earlybird.data import units
from earlybird.data.errors import InputError


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.parse_bytes, "64MiB", 2**26),
        (units.parse_bytes, "1.5MB", 1_500_000),
        (units.parse_bytes, "4096", 4096),
        (units.parse_bandwidth, "25GB/s", 25e9),
        (units.parse_bandwidth, "2gbit", 0.25e9),
        (units.parse_bandwidth, "200mbit", 25e6),
        (units.parse_bandwidth, "1.2e9", 1.2e9),
        (units.parse_delay_rate, "1000us/MB", 1e-9),
        (units.parse_frequency, "3.5GHz", 3.5e9),
        (units.parse_duration, "2min", 120),
        (units.parse_duration, "100ms", 0.1),
    ],
)
def test_quantities_become_si(parse, text, value):
    assert parse(text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (units.parse_bandwidth, "1GHz"),
        (units.parse_frequency, "25GB/s"),
        (units.parse_bytes, "8rad"),
        (units.parse_bytes, "2s"),
        (units.parse_delay_rate, "5s"),
        (units.parse_duration, "3MB"),
        (units.parse_bytes, "12 parsnips"),
        (units.parse_bytes, "-1kB"),
        (units.parse_bandwidth, "0"),
        (units.parse_bytes, ""),
    ],
)
def test_another_kind_of_quantity_is_refused_in_a_sentence(parse, text):
    with pytest.raises(InputError, match="such as"):
        parse(text)
