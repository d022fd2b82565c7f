"""Patterns: every format gives back what was written, and a bad message is named by its line."""

import ast
import io
import threading
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earlybird.data import memory, npz
from earlybird.data import pattern as pattern_module
from earlybird.data.errors import InputError
from earlybird.data.pattern import MAX_BYTES, Pattern, load_pattern, save_pattern


@st.composite
def patterns(draw) -> Pattern:
    num_ranks = draw(st.integers(2, 50))
    src = draw(st.lists(st.integers(0, num_ranks - 1), max_size=20))
    dst = [(rank + draw(st.integers(1, num_ranks - 1))) % num_ranks for rank in src]
    sizes = [draw(st.integers(0, MAX_BYTES // 32)) for _ in src]
    return Pattern(np.array(src, dtype=int), np.array(dst, dtype=int), np.array(sizes, dtype=int))


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".mtx", ".mm", ""])
@given(pattern=patterns())
def test_written_pattern_reads_back_message_by_message(tmp_path_factory, suffix, pattern):
    path = tmp_path_factory.mktemp("pattern") / f"pattern{suffix}"
    save_pattern(pattern, path)
    again = load_pattern(path)
    assert np.array_equal(again.triples(), pattern.triples())
    assert again.sha256() == pattern.sha256()


def test_largest_size_survives_every_format(tmp_path):
    pattern = Pattern(np.array([0]), np.array([1]), np.array([MAX_BYTES]))
    for suffix in (".csv", ".npz", ".mtx"):
        save_pattern(pattern, tmp_path / f"p{suffix}")
        assert load_pattern(tmp_path / f"p{suffix}").bytes.tolist() == [MAX_BYTES]


def test_headers_of_arrays_are_parsed_in_one_thread(tmp_path, monkeypatch):
    """CPython before 3.13 fails now and then if several threads parse at once."""
    save_pattern(Pattern(np.array([0]), np.array([1]), np.array([8])), tmp_path / "p.npz")
    parse, threads = ast.literal_eval, set()
    monkeypatch.setattr(
        ast, "literal_eval", lambda text: [threads.add(threading.get_ident()), parse(text)][1]
    )
    assert load_pattern(tmp_path / "p.npz").bytes.tolist() == [8]
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1"),
        ("source,dst,bytes\n0,1,8\n", "line 1 is 'source,dst,bytes'"),
        ("0,1,8\n", "line 1"),
        ("src,dst,bytes\n0,1,8\n0,one,8\n", "line 3: 'one'"),
        ("src,dst,bytes\n0,1,8KiB\n", "line 2: '8KiB'"),
        ("src,dst,bytes\n0,1,1.5\n", "line 2: '1.5'"),
        ("src,dst,bytes\n0,1,1_000\n", "line 2: '1_000'"),
        ("src,dst,bytes\n0,1,\n", "line 2: ''"),
        ("src,dst,bytes\n0,1\n", "line 2 has 2 columns"),
        ("src,dst,bytes\n0,1,2,3\n", "line 2 has 4 columns"),
        ("src,dst,bytes\n0,1,8\n\n2,2,8\n", r"line 4 \(2,2,8\)"),
        ("src,dst,bytes\n0,1,-1\n", "line 2 .*negative"),
        ("src,dst,bytes\n-1,1,8\n", "line 2 .*rank is negative"),
        (f"src,dst,bytes\n0,1,{MAX_BYTES + 1}\n", "line 2 .*beyond"),
        (f"src,dst,bytes\n0,1,{10**30}\n", "line 2: .*64 bits"),
        (f"src,dst,bytes\n0,1,{'9' * 5000}\n", "line 2: .*64 bits"),
        (f"src,dst,bytes\n0,1,{MAX_BYTES}\n1,0,{MAX_BYTES}\n", "add up"),
        ('src,dst,bytes\n0,1,8\n"0,1,8\n1,0,8\n', "line 3: '\"0'"),
    ],
)
def test_bad_row_is_refused_by_line(tmp_path, text, says):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=says) as refused:
        load_pattern(path)
    assert "\n" not in str(refused.value)
    assert str(path) in str(refused.value) or says == "add up"


def test_spreadsheet_text_is_read(tmp_path):
    path = tmp_path / "excel.csv"
    path.write_bytes(b"\xef\xbb\xbfsrc, dst, bytes\r\n0, 1, 8\r\n\r\n1,0, +9 \r\n")
    assert load_pattern(path).triples().tolist() == [[0, 1, 8], [1, 0, 9]]


def test_missing_folder_and_binary_files_are_refused(tmp_path):
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "broken.npz").write_bytes(b"PK no archive")
    for name, says in (
        ("none.csv", "does not exist"),
        ("none.npz", "does not exist"),
        ("binary.csv", "not text"),
        ("broken.npz", "not a readable"),
        ("", "folder"),
    ):
        with pytest.raises(InputError, match=says):
            load_pattern(tmp_path / name)


def test_npz_arrays_must_be_three_equal_integer_arrays(tmp_path):
    one = np.array([1])
    for arrays, says in (
        ({"src": one, "dst": one - 1}, "lacks an array"),
        ({"src": one, "dst": one - 1, "bytes": np.array([1.5])}, "not integers"),
        ({"src": one, "dst": one - 1, "bytes": np.array([1, 2])}, "differ in length"),
        ({"src": one, "dst": one - 1, "bytes": np.array([[1]])}, "differ in length"),
        ({"src": one, "dst": one - 1, "bytes": np.array(8)}, "differ in length"),
        ({"src": one, "dst": one, "bytes": one}, "message 0 .*to itself"),
        ({"src": one, "dst": one - 1, "bytes": np.array([2**63], dtype=np.uint64)}, "beyond"),
    ):
        np.savez(tmp_path / "bad.npz", **arrays)
        with pytest.raises(InputError, match=says):
            load_pattern(tmp_path / "bad.npz")


def test_unsigned_sizes_beyond_53_bits_are_read_exactly(tmp_path):
    np.savez(tmp_path / "p.npz", src=[0], dst=[1], bytes=np.array([2**53 + 1], dtype=np.uint64))
    assert load_pattern(tmp_path / "p.npz").bytes.tolist() == [2**53 + 1]


def test_matrix_market_row_sends_to_column_from_one(tmp_path):
    path = tmp_path / "p.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n3 3 3\n1 2 5.0\n3 1 0\n1 2 7\n")
    assert load_pattern(path).triples().tolist() == [[0, 1, 5], [2, 0, 0], [0, 1, 7]]


def test_symmetric_matrix_market_entry_is_a_message_each_method(tmp_path):
    path = tmp_path / "p.mtx"
    path.write_text("%%MatrixMarket matrix coordinate integer symmetric\n3 3 2\n2 1 5\n3 1 6\n")
    messages = {tuple(row) for row in load_pattern(path).triples().tolist()}
    assert messages == {(1, 0, 5), (0, 1, 5), (2, 0, 6), (0, 2, 6)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n2 1\n", r"no sizes.* mesh /\S+/p\.mtx`"),
        ("%%MatrixMarket matrix coordinate integer general\n3 2 1\n2 1 4\n", "3 rows and 2 columns"),
        ("%%MatrixMarket matrix coordinate integer general\n%\n2 2 2\n\n2 1 4\n2 2 4\n", "line 6 .*itself"),
        ("%%MatrixMarket matrix coordinate real general\n% x\n2 2 1\n2 1 1.5\n", "line 4 .*1.5"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n2 1 inf\n", "line 3 .*inf"),
        ("%%MatrixMarket matrix coordinate integer symmetric\n2 2 1\n2 1 -4\n", "entry .*negative"),
        ("%%MatrixMarket matrix coordinate integer general\n2 2 2\n2 1 4\n", "not a Matrix Market file"),
        ("src,dst,bytes\n", "not a Matrix Market file"),
    ],
)
def test_bad_matrix_market_is_refused(tmp_path, text, says):
    (tmp_path / "p.mtx").write_text(text)
    with pytest.raises(InputError, match=says) as refused:
        load_pattern(tmp_path / "p.mtx")
    assert "\n" not in str(refused.value)


def test_rank_outside_the_layout_is_named():
    pattern = Pattern(np.array([0, 1]), np.array([1, 4]), np.array([8, 8]))
    pattern.check_ranks(5)
    with pytest.raises(InputError, match=r"rank 4 \(message 1\).*4 ranks.*at least 5"):
        pattern.check_ranks(4)


def test_pattern_leaves_the_callers_arrays_alone():
    src = np.array([0])
    pattern = Pattern(src, np.array([1]), np.array([8]))
    src[0] = 1
    assert pattern.src[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        pattern.src[0] = 2


def test_empty_pattern_names_no_ranks():
    empty = Pattern(np.array([]), np.array([]), np.array([]))
    assert (empty.num_messages, empty.num_ranks_named, empty.total_bytes) == (0, 0, 0)


def archive_of(**arrays):
    archive = io.BytesIO()
    np.savez_compressed(archive, **arrays)
    return archive.getvalue()


def archive_with_header(shape, kind, data=b""):
    """An archive whose array src declares another size than it has."""
    content = io.BytesIO(archive_of(src=[0], dst=[1], bytes=[8]))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": kind, "fortran_order": False, "shape": shape})
    changed = io.BytesIO()
    with zipfile.ZipFile(content) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, header.getvalue() + data if name == "src.npy" else old.read(name))
    return changed.getvalue()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (archive_of(src=np.array([{}]), dst=[1], bytes=[8]), "not integers"),
        (archive_of(src=[[0]], dst=[1], bytes=[8]), "differ in length"),
        (archive_of(src=[0.5], dst=[1], bytes=[8]), "not integers"),
        (archive_of(src=[0], dst=[1]), "must hold src, dst and bytes"),
        (archive_of(src=np.array([2**64 - 1], np.uint64), dst=[1], bytes=[8]), "beyond 63 bits"),
        (archive_with_header((10**12,), "<i8", bytes(8)), "not a readable"),
        (archive_with_header((-1,), "<i8", bytes(8)), "not a readable"),
        (archive_with_header((2**62, 4), "<i8"), "differ in length"),
        (
            archive_of(**dict.fromkeys(("src", "dst", "bytes"), np.zeros(200_000, np.int64))),
            "of memory, and",
        ),
    ],
)
def test_arrays_that_are_no_messages_take_no_memory(tmp_path, monkeypatch, content, says):
    monkeypatch.setattr(memory, "available_memory_bytes", lambda: 11_000_000)
    (tmp_path / "p.npz").write_bytes(content)
    tracemalloc.start()
    with pytest.raises(InputError, match=says) as refused:
        load_pattern(tmp_path / "p.npz")
    assert "\n" not in str(refused.value) and tracemalloc.get_traced_memory()[1] < 1 << 21
    tracemalloc.stop()


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".mtx"])
def test_memory_is_the_only_limit_of_a_pattern_that_is_read(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(pattern_module, "MAX_MESSAGES", 1)
    save_pattern(Pattern([0, 1], [1, 0], [8, 8]), tmp_path / f"p{suffix}")
    assert load_pattern(tmp_path / f"p{suffix}").num_messages == 2
    monkeypatch.setattr(memory, "available_memory_bytes", lambda: 200)
    with pytest.raises(InputError, match="of memory, and 200 B are available"):
        load_pattern(tmp_path / f"p{suffix}")


def test_a_small_archive_of_large_arrays_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(npz, "_SMALL_BYTES", 1 << 20)
    zeros = np.zeros(100_000, np.int64)
    arrays = {"src": zeros, "dst": zeros + 1, "bytes": zeros}
    (tmp_path / "p.npz").write_bytes(archive_of(**arrays))
    with pytest.raises(InputError, match=r"times what the archive has; above 1 MiB give arrays that are not"):
        load_pattern(tmp_path / "p.npz")
    np.savez(tmp_path / "p.npz", **arrays)
    assert load_pattern(tmp_path / "p.npz").num_messages == 100_000
    src = np.arange(100_000)  # of regular messages, which are compressed best
    (tmp_path / "p.npz").write_bytes(archive_of(src=src, dst=src + 1, bytes=np.full(100_000, 8)))
    assert load_pattern(tmp_path / "p.npz").num_messages == 100_000


def test_an_archive_itself_takes_no_memory(tmp_path):
    with zipfile.ZipFile(tmp_path / "p.npz", "w") as archive:
        archive.writestr("bytes.npy", bytes(8 << 20))
    tracemalloc.start()
    with pytest.raises(InputError, match="lacks an array"):
        load_pattern(tmp_path / "p.npz")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_arrays_of_version_3_are_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "p.npz", "w") as archive:
        for name, value in (("src", 0), ("dst", 1), ("bytes", 8)):
            content = io.BytesIO()
            np.lib.format.write_array(content, np.array([value]), version=(3, 0))
            archive.writestr(f"{name}.npy", content.getvalue())
    assert load_pattern(tmp_path / "p.npz").triples().tolist() == [[0, 1, 8]]


@pytest.mark.parametrize("row", ["4611686018427387904,1,8", "1,10000000,8"])
def test_a_rank_beyond_every_layout_is_refused_with_its_line(tmp_path, row):
    (tmp_path / "p.csv").write_text(f"src,dst,bytes\n0,1,8\n{row}\n")
    with pytest.raises(InputError, match=r"line 3 .*ranks are 0 to 9999999"):
        load_pattern(tmp_path / "p.csv")


def test_a_separator_of_ascii_or_a_thousand_zeros_make_no_number(tmp_path):
    (tmp_path / "p.csv").write_text(f"src,dst,bytes\n0,1,{'0' * 5000}8\n")
    with pytest.raises(InputError, match=r"line 2: .* not a whole number"):
        load_pattern(tmp_path / "p.csv")
    (tmp_path / "p.csv").write_text("src,dst,bytes\n0,1,8\x1d\n")
    with pytest.raises(InputError, match=r"line 2: .* not a whole number"):
        load_pattern(tmp_path / "p.csv")
