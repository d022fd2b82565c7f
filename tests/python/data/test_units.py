"""Units: every form people type, SI inside, and one sentence for everything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earlybird.data import units
from earlybird.data.errors import InputError


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.parse_bytes, "0", 0),
        (units.parse_bytes, 4096, 4096),
        (units.parse_bytes, "1kB", 1000),
        (units.parse_bytes, "1KiB", 1024),
        (units.parse_bytes, "1.5MB", 1_500_000),
        (units.parse_bytes, "64MiB", 64 << 20),
        (units.parse_bytes, "2 GB", 2_000_000_000),
        (units.parse_bytes, "1GiB", 1 << 30),
        (units.parse_bytes, "1.001kB", 1001),
        (units.parse_bandwidth, "25GB/s", 25e9),
        (units.parse_bandwidth, "1MiB/s", 1 << 20),
        (units.parse_bandwidth, "2gbit", 0.25e9),
        (units.parse_bandwidth, "200mbit", 25e6),
        (units.parse_bandwidth, "10Gbit/s", 1.25e9),
        (units.parse_bandwidth, "1.2e9", 1.2e9),
        (units.parse_delay_rate, "1000us/MB", 1e-9),
        (units.parse_delay_rate, "1e-9", 1e-9),
        (units.parse_frequency, "3.5GHz", 3.5e9),
        (units.parse_frequency, "100MHz", 1e8),
        (units.parse_duration, "60s", 60),
        (units.parse_duration, "2min", 120),
        (units.parse_duration, "5m", 300),
        (units.parse_duration, "100ms", 0.1),
        (units.parse_duration, "0.5", 0.5),
        (units.parse_duration, "+.5 min", 30),
        (units.parse_duration, "2 hour", 7200),
        (units.parse_duration, "3 µs", 3e-6),
    ],
)
def test_text_becomes_si(parse, text, value):
    assert parse(text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (units.parse_bytes, ""),
        (units.parse_bytes, "many"),
        (units.parse_bytes, "-1"),
        (units.parse_bytes, "1.5"),
        (units.parse_bytes, "0.3B"),
        (units.parse_bytes, "10 furlong"),
        (units.parse_bytes, "5s"),
        (units.parse_bytes, "nan"),
        (units.parse_bytes, "1e400"),
        (units.parse_bytes, "1e30"),
        (units.parse_bytes, "64MiB)"),
        (units.parse_bytes, "2**9999**9999"),
        (units.parse_bandwidth, "9GB/s**9**9**9"),
        (units.parse_bandwidth, "0"),
        (units.parse_bandwidth, "0gbit"),
        (units.parse_bandwidth, "-2gbit"),
        (units.parse_bandwidth, "25GB"),
        (units.parse_bandwidth, "inf"),
        (units.parse_delay_rate, "1000us"),
        (units.parse_frequency, "0"),
        (units.parse_frequency, "3.5GB"),
        (units.parse_duration, "60 parsec"),
        (units.parse_bandwidth, "1GHz"),
        (units.parse_frequency, "25GB/s"),
        (units.parse_bytes, "8rad"),
        (units.parse_delay_rate, "5s"),
        (units.parse_duration, "3MB"),
        (units.parse_bytes, "-1kB"),
    ],
)
def test_what_is_no_such_quantity_is_refused(parse, text):
    with pytest.raises(InputError, match="--thing is") as refused:
        parse(text, "--thing")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("unit", units.EVERYDAY)
def test_everyday_units_are_worth_what_they_are_in_the_definitions(unit, monkeypatch):
    parse = {
        "byte": units.parse_bytes, "second": units.parse_duration, "byte/second": units.parse_bandwidth,
        "second/byte": units.parse_delay_rate,
    }[unit]  # fmt: skip
    names = list(units.EVERYDAY[unit])
    everyday = [parse(f" 3 {name} ") for name in names]
    monkeypatch.setitem(units.EVERYDAY, unit, {})
    assert everyday == pytest.approx([parse(f"3{name}") for name in names], rel=1e-14)


@given(size=st.integers(0, 1 << 50))
def test_plain_numbers_of_bytes_are_exact(size):
    assert units.parse_bytes(str(size)) == size


@pytest.mark.parametrize(
    ("format", "value", "text"),
    [
        (units.format_bytes, 0, "0 B"),
        (units.format_bytes, 1023, "1023 B"),
        (units.format_bytes, 1024, "1 KiB"),
        (units.format_bytes, 1536, "1.5 KiB"),
        (units.format_bytes, 64 << 20, "64 MiB"),
        (units.format_bytes, 3 << 41, "6 TiB"),
        (units.format_seconds, 0, "0 ns"),
        (units.format_seconds, 1.5e-6, "1.5 us"),
        (units.format_seconds, 2e-3, "2 ms"),
        (units.format_seconds, 90, "90 s"),
        (units.format_seconds, -2e-9, "-2 ns"),
        (units.format_seconds, float("nan"), "nan ns"),
        (units.format_seconds, float("inf"), "inf s"),
        (units.format_bandwidth, 1.2e10, "12 GB/s"),
        (units.format_bandwidth, 2.5e8, "250 MB/s"),
        (units.format_bandwidth, 10, "10 B/s"),
    ],
)
def test_figures_read_as_the_field_prints_them(format, value, text):
    assert format(value) == text


def test_a_size_as_an_option_takes_it_is_exact():
    assert [units.size_argument(size) for size in (1, 1024, 1536, 1030, 3_000_000)] == [
        "1B", "1KiB", "1536", "1030", "3000000",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "-1", "+1", "1_0", "1.0", "٣", "x", "1" * 19, "9" * 5000])
def test_what_is_no_whole_number_of_64_bits_is_none(text):
    assert units.whole_number(text) is None


def test_whole_numbers_may_have_leading_zeros():
    for text, number in (("0", 0), ("007", 7), ("0" * 5000 + "1", 1), ("9" * 18, 10**18 - 1)):
        assert units.whole_number(text) == number


@pytest.mark.parametrize(
    ("parse", "text", "unit"),
    [
        (units.parse_bytes, "1mb", "'mb'"),
        (units.parse_bandwidth, "5GB", "'GB'"),
        (units.parse_bandwidth, "5 Gb/s", "'Gb/s'"),
        (units.parse_duration, "3 S", "'S'"),
        (units.parse_delay_rate, "3us", "'us'"),
    ],
)
def test_a_unit_that_is_none_is_named(parse, text, unit):
    with pytest.raises(InputError, match=f"and {unit} is no unit of it, where upper and lower case differ"):
        parse(text)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (units.parse_duration, "1e10s"),
        (units.parse_duration, "9" * 5000),
        (units.parse_bandwidth, "1e40"),
        (units.parse_bandwidth, "1e300gbit"),
        (units.parse_delay_rate, "1e10"),
        (units.parse_frequency, "1e20"),
        (units.parse_bytes, "1e30"),
        (units.parse_bytes, "9" * 30_000 + " GB/q"),
        (units.parse_delay_rate, "1" + "m" * 30_000),
        (units.parse_bandwidth, "9" * 30_000 + "gbi"),
        (units.parse_fraction, "9" * 30_000 + "x"),
    ],
)
def test_quantities_beyond_what_is_physical_are_refused_in_one_short_sentence(parse, text):
    with pytest.raises(InputError, match=r"at most|give a number|give a fraction") as refused:
        parse(text)
    assert len(str(refused.value)) < 250


def test_sizes_beyond_floating_point_have_a_text():
    assert units.format_bytes(10**400) == "9.09e+287 TiB" and units.format_bytes(2**62) == "4194304 TiB"
