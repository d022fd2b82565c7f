"""Published tables load in SI units and say which line is wrong."""

import pytest

from earlybird.data.errors import InputError
from earlybird.data.profile import profile_from_json
from earlybird.data.tables import PINGPONG_HEADER, THUNE_HEADER, load_pingpong_table, load_thune_table
from tests.reference import needs_reference, reference

THUNE = "thune_table1.csv"


def write(path, header, *lines):
    path.write_text("\n".join([",".join(header), *lines]) + "\n")
    return path


@needs_reference(THUNE)
def test_the_table_of_thune_loads_as_profiles():
    profiles = load_thune_table(reference(THUNE))
    assert len(profiles) == 4
    (protocol,) = profiles["Kunpeng 920-6426"].levels["inter_socket"].protocols
    assert protocol.latency_s == pytest.approx(5.1e-6)
    assert protocol.bandwidth_bytes_per_s == pytest.approx(
        {1: 4.6e9, 2: 9.1e9, 4: 10.4e9, 8: 13.3e9, 16: 18.6e9, 64: 49.5e9}
    )
    cores = [max(p.levels["intra_socket"].protocols[0].bandwidth_bytes_per_s) for p in profiles.values()]
    assert cores == [32, 64, 26, 64]
    for profile in profiles.values():
        assert profile_from_json(profile.to_json()).to_json() == profile.to_json()


def test_the_largest_bandwidth_of_an_unknown_cpu_keeps_no_n(tmp_path):
    path = write(tmp_path / "t.csv", THUNE_HEADER, "Other,intra_socket,1,2,3,4,5,6,7")
    (protocol,) = load_thune_table(path)["Other"].levels["intra_socket"].protocols
    assert sorted(protocol.bandwidth_bytes_per_s) == [1, 2, 4, 8, 16]
    assert protocol.extra["bandwidth_max_bytes_per_s"] == pytest.approx(7e9)


def test_ping_pongs_load_as_observations(tmp_path):
    path = write(tmp_path / "t.csv", PINGPONG_HEADER, "inter_node,3,2,0,4e-6")
    (row,) = load_pingpong_table(path).to_dict("records")
    assert (row["n"], row["size_bytes"], row["time_s"], row["launch"]) == (2, 0, 4e-6, "placement 3")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("moon,0,1,8,1e-6", "moon"),
        ("inter_node,0,0,8,1e-6", "pairs"),
        ("inter_node,0,1.5,8,1e-6", "pairs"),
        ("inter_node,0,1,-8,1e-6", "bytes"),
        ("inter_node,0,1,8,soon", "soon"),
        ("inter_node,0,1,8,0", "time_s"),
        ("inter_node,0,1,8", "5 values"),
        ("inter_node,0,1,8,1e-6,9", "5 values"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, word):
    path = write(tmp_path / "t.csv", PINGPONG_HEADER, "inter_node,0,1,8,1e-6", line)
    with pytest.raises(InputError, match="line 3") as error:
        load_pingpong_table(path)
    assert word in str(error.value)


def test_another_header_and_an_empty_table_are_refused(tmp_path):
    with pytest.raises(InputError, match="must be 'level,placement"):
        load_pingpong_table(write(tmp_path / "a.csv", ["x", "y"], "1,2"))
    with pytest.raises(InputError, match="no rows"):
        load_pingpong_table(write(tmp_path / "b.csv", PINGPONG_HEADER))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (f"inter_node,{'1' * 140_000},2,8,1e-6", "line 2, is not CSV .*131072.*; give 5 values"),
        ("inter_node,a,1e300,8,1e-6", "pairs is '1e300'; give a whole number above 0, at most 1e"),
        ("inter_node,a,2,1e300,1e-6", "bytes is '1e300'; give .* at most 4.6"),
        ("inter_node,a,2,8,1.8e308", "time_s is '1.8e308'; give a number above 0, at most 3.15576e"),
        ("inter_node,a,2,8,1e10", "time_s is '1e10'; give"),
        ("inter_node,a,2,8,nan", "time_s is 'nan'; give"),
    ],
)
def test_cells_that_are_too_long_or_out_of_range_are_refused_by_line(tmp_path, row, says):
    (tmp_path / "table.csv").write_text(f"{','.join(PINGPONG_HEADER)}\n{row}\n")
    with pytest.raises(InputError, match=says) as refused:
        load_pingpong_table(tmp_path / "table.csv")
    assert len(str(refused.value)) < 400


def test_a_time_that_no_clock_measures_is_refused(tmp_path):
    path = tmp_path / "times.csv"
    path.write_text(",".join(PINGPONG_HEADER) + "\ninter_node,1,1,8,5e-324\n")
    with pytest.raises(
        InputError, match=r"line 2: time_s is '5e-324'; give a number above 0, at most .* and at least 1e-15"
    ):
        load_pingpong_table(path)
