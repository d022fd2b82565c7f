"""Files of Open MPI's monitoring: real ones give the messages of the program, others a clear sentence."""

import sys
from pathlib import Path

import pytest

from earlybird.cli import main
from earlybird.data.errors import InputError
from earlybird.data.pattern import load_pattern
from earlybird.interop.monitoring import load_monitoring

# Written by Open MPI 4.1.4 of Debian 12, which has the component (the wheel of Open MPI 5 does not):
# mpicc ring.c -o ring
# mpirun -n 4 --oversubscribe --mca pml_monitoring_enable 2 --mca pml_monitoring_enable_output 3 \
#     --mca pml_monitoring_filename app ./ring
REAL = Path(__file__).parents[2] / "recorded" / "openmpi-monitoring"


def run_pattern(monkeypatch, *arguments) -> int:
    monkeypatch.setattr(sys, "argv", ["earlybird", "pattern", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        main.run()
    return caught.value.code


def run(monkeypatch, *arguments) -> int:
    return run_pattern(monkeypatch, "monitoring", *arguments)


def rows(totals):
    totals = totals.by_pair()
    columns = (getattr(totals, name).tolist() for name in ("src", "dst", "messages", "bytes"))
    return list(zip(*columns, strict=True))


def test_real_files_have_the_messages_of_their_program():
    """ring.c: rank r sends r + 1 messages of 1000 (r + 1) bytes and one of 0 bytes to the next."""
    loaded = load_monitoring([REAL / "app"])
    assert rows(loaded.totals) == [(r, (r + 1) % 4, r + 2, 1000 * (r + 1) ** 2) for r in range(4)]
    assert loaded.num_ranks == 4 and loaded.remarks() == []


def test_internal_messages_are_those_of_the_allreduce():
    own, all_of_them = (load_monitoring([REAL / "app"], internal=value).totals for value in (False, True))
    # Recursive doubling: two messages of an int from each of four ranks.
    assert all_of_them.messages.sum() - own.messages.sum() == 8
    assert all_of_them.bytes.sum() - own.bytes.sum() == 8 * 4


def test_the_command_writes_a_pattern(monkeypatch, capsys, tmp_path):
    files = sorted(REAL.glob("*.prof"))
    assert run(monkeypatch, REAL / "app", "-o", tmp_path / "a.csv", "--combined") == 0
    assert run(monkeypatch, *files, "-o", tmp_path / "b.csv", "--combined") == 0
    assert "4 messages, 4 ranks" in capsys.readouterr().out
    wanted = [[r, (r + 1) % 4, 1000 * (r + 1) ** 2] for r in range(4)]
    assert load_pattern(tmp_path / "a.csv").triples().tolist() == wanted
    assert load_pattern(tmp_path / "b.csv").triples().tolist() == wanted
    assert run(monkeypatch, REAL / "app", "-o", tmp_path / "c.csv") == 0
    pattern = load_pattern(tmp_path / "c.csv")
    assert pattern.num_messages == 14 and pattern.total_bytes == 1000 * (1 + 4 + 9 + 16)


def test_phases_are_added_up_and_a_rank_without_a_file_is_named(tmp_path):
    for name, count in (("p1.0", 2), ("p2.0", 3), ("p2.2", 1)):
        rank = name[-1]
        text = f"# POINT TO POINT\nE\t{rank}\t1\t{10 * count} bytes\t{count} msgs sent\t0,{count}\n# OSC\n"
        (tmp_path / f"{name}.prof").write_text(text)
    (tmp_path / "p10.0.prof").write_text("another prefix")
    loaded = load_monitoring([tmp_path / "p1", tmp_path / "p2", tmp_path / "p2"])
    assert rows(loaded.totals) == [(0, 1, 5, 50), (2, 1, 1, 10)]
    assert loaded.remarks() == ["there is no file of rank 1, so what was sent from there is not counted"]


def write(folder, *lines):
    """The file of rank 0."""
    (folder / "app.0.prof").write_text("\n".join(["# POINT TO POINT", *lines, "# OSC", ""]))
    return folder / "app"


def classes(totals):
    columns = (getattr(totals, name).tolist() for name in ("size_class", "messages", "bytes"))
    return list(zip(*columns, strict=True))


def test_sizes_are_those_of_the_histogram(tmp_path):
    """One message of 0 bytes, two of 8 to 15 and one of 512 to 1023."""
    histogram = ",".join({0: "1", 4: "2", 10: "1"}.get(k, "0") for k in range(66))
    loaded = load_monitoring([write(tmp_path, f"E\t0\t1\t1020 bytes\t4 msgs sent\t{histogram}")])
    found = classes(loaded.totals)
    assert [row[:2] for row in found] == [(0, 1), (4, 2), (10, 1)]
    assert found[0][2] == 0 and 16 <= found[1][2] <= 30 and 512 <= found[2][2] <= 1023
    assert sum(row[2] for row in found) == 1020
    for total, wanted in ((528, [0, 16, 512]), (1053, [0, 30, 1023])):
        line = f"E\t0\t1\t{total} bytes\t4 msgs sent\t{histogram}"
        assert [row[2] for row in classes(load_monitoring([write(tmp_path, line)]).totals)] == wanted


def test_a_histogram_that_also_counts_internal_messages_is_used_with_them_only(tmp_path):
    prefix = write(
        tmp_path, "E\t0\t1\t1000 bytes\t1 msgs sent\t0,0,0,1,0,0,0,0,0,0,1", "I\t0\t1\t4 bytes\t1 msgs sent"
    )
    assert classes(load_monitoring([prefix]).totals) == [(-1, 1, 1000)]
    both = classes(load_monitoring([prefix], internal=True).totals)
    assert [row[:2] for row in both] == [(3, 1), (10, 1)] and sum(row[2] for row in both) == 1004


def test_files_without_messages_are_an_empty_pattern(tmp_path):
    (tmp_path / "app.0.prof").write_text("# POINT TO POINT\n# OSC\n# COLLECTIVES\n")
    loaded = load_monitoring([tmp_path / "app"])
    assert (rows(loaded.totals), loaded.num_ranks) == ([], 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("src,dst,bytes\n0,1,8\n", "line 1"),
        ("# POINT TO POINT\nE\t0\t1\t8 bytes\n", "line 2"),
        ("# POINT TO POINT\nE\t3\t1\t8 bytes\t1 msgs sent\n", "line 2"),
        ("# POINT TO POINT\nE\t0\t-1\t8 bytes\t1 msgs sent\n", "line 2"),
        ("# POINT TO POINT\nE\t0\t1\t9999999999999999999 bytes\t1 msgs sent\n", "count more than"),
        ("", "line 1"),
    ],
)
def test_other_files_are_refused_in_a_sentence(monkeypatch, capsys, tmp_path, text, said):
    (tmp_path / "app.0.prof").write_text(text)
    assert run(monkeypatch, tmp_path / "app", "-o", tmp_path / "x.csv") == 2
    output = capsys.readouterr().err
    assert output.startswith("earlybird: ") and output.count("\n") == 1 and said in output
    assert not (tmp_path / "x.csv").exists()


def test_a_prefix_without_files_is_refused(tmp_path):
    for source in (tmp_path / "none", tmp_path / "no" / "folder", REAL / "app.0"):
        with pytest.raises(InputError, match=r"RANK\.prof"):
            load_monitoring([source])
