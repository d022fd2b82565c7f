"""Files: readers see the old text or the new, and appended lines are whole or absent."""

import errno
import json
import os
import socket
import stat
import threading
import tracemalloc

import pytest

from earlybird.data import files, json_text, memory
from earlybird.data.errors import InputError, WorkError


class DiskIsFull:
    """Stands in for os.fsync: what was written does not reach the disk."""

    def __call__(self, descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_failing_writer_leaves_the_old_file_and_nothing_next_to_it(tmp_path):
    path = tmp_path / "file.json"
    path.write_text("old")
    with pytest.raises(RuntimeError), files.replace_when_complete(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file.json"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", DiskIsFull())
    with pytest.raises(WorkError, match=r"no space left on device.*free some space"):
        files.write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_full_device_as_output_is_reported_and_stays_a_device():
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with pytest.raises(WorkError, match="no space left on device"):
        files.write_text("/dev/full", "text")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_pipe_as_output_gets_the_text(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        files.write_text(path, "text")
        assert os.read(reader, 100) == b"text"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_value_that_is_no_json_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.json"
    files.write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="JSON compliant"):
        files.write_json(path, {"a": float("nan")})
    assert json.loads(path.read_text()) == {"a": 1}


def test_replacing_keeps_the_mode_and_follows_links(tmp_path):
    target = tmp_path / "target"
    target.write_text("old")
    target.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(target)
    files.write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_new_file_has_the_mode_of_an_ordinary_one(tmp_path):
    files.write_text(tmp_path / "ours", "")
    (tmp_path / "ordinary").write_text("")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_places_that_cannot_be_written_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for path, says in (
        (tmp_path / "none" / "file", "does not exist; create it first"),
        ("/proc/file", "does not accept files"),
        (tmp_path / "file" / "inside", "is not a folder"),
        (tmp_path, "it is a folder"),
    ):
        with pytest.raises(InputError, match=says):
            files.write_text(path, "text")


def test_append_that_fails_is_cut_back(tmp_path, monkeypatch):
    path = tmp_path / "lines"
    files.append_lines(path, ["one"])
    monkeypatch.setattr(os, "fsync", DiskIsFull())
    with pytest.raises(WorkError, match="what was complete is kept"):
        files.append_lines(path, ["two", "three"])
    monkeypatch.undo()
    assert path.read_text() == "one\n"
    files.append_lines(path, ["two"])
    assert path.read_text() == "one\ntwo\n"


def test_append_cut_short_by_a_file_size_limit_is_cut_back(tmp_path):
    resource = pytest.importorskip("resource")
    import signal

    path = tmp_path / "lines"
    files.append_lines(path, ["one"])
    old_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    old_handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, old_limit[1]))
        with pytest.raises(WorkError, match="file too large"):
            files.append_lines(path, ["x" * 2000])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old_limit)
        signal.signal(signal.SIGXFSZ, old_handler)
    assert path.read_text() == "one\n"


def test_unterminated_last_line_is_cut(tmp_path):
    path = tmp_path / "lines"
    assert files.cut_unterminated_line(path) == 0
    for before, after in ((b"one\ntw", b"one\n"), (b"one\n", b"one\n"), (b"on", b""), (b"", b"")):
        path.write_bytes(before)
        assert files.cut_unterminated_line(path) == len(before) - len(after)
        assert path.read_bytes() == after


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON \\(line 1"),
        ("[1]", "holds a JSON list"),
        ('{"schema": "earlybird.other/1"}', "'earlybird.other/1'; this version reads 'earlybird.thing/1'"),
        ("{}", "file holds no thing: it has no key 'schema'"),
        ('{"a": ' + "9" * 5000 + "}", "not usable JSON"),
        ('{"a": ' + "[" * 200_000, "JSON"),
    ],
)
def test_json_that_is_not_ours_is_refused(tmp_path, text, says):
    (tmp_path / "file").write_text(text)
    with pytest.raises(InputError, match=says):
        files.read_json(tmp_path / "file", "thing", "earlybird.thing/1")


# Reading -------------------------------------------------------------------------------------------------


def refusal(path, read=files.read_bytes):
    with pytest.raises(InputError) as refused:
        read(path, "file")
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_devices_sockets_and_loops_of_links_are_not_read(tmp_path):
    for device in ("/dev/zero", "/dev/null", "/dev/full", "/dev/random"):
        assert refusal(device) == f"the file {device} is a device; give a regular file or a pipe"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        assert "is a socket" in refusal(tmp_path / "socket")
    (tmp_path / "loop").symlink_to("loop")
    assert "symbolic links; check the path" in refusal(tmp_path / "loop")
    assert "file name too long; check the path" in refusal(tmp_path / ("x" * 300))
    assert "no valid name" in refusal("a\0b")
    assert "no valid name" in refusal("\ud800")


def test_a_pipe_is_read_to_its_end_if_something_writes_to_it(tmp_path, monkeypatch):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    monkeypatch.setattr(files, "_NO_WRITER_S", 0.05)
    assert "a pipe that nothing writes to" in refusal(path)
    monkeypatch.setattr(files, "_NO_WRITER_S", 60)
    text = "line\n" * 100_000
    writer = threading.Thread(target=path.write_text, args=[text], daemon=True)
    writer.start()
    assert files.read_text(path, "file") == text
    writer.join()
    read, write = os.pipe()  # as of <(...): what has written may have ended
    os.write(write, b"text")
    os.close(write)
    assert files.read_text(f"/dev/fd/{read}", "file") == "text"
    os.close(read)


def test_a_pipe_that_falls_silent_or_does_not_end_is_refused(monkeypatch):
    read, write = os.pipe()
    os.write(write, b"x" * 2000)
    monkeypatch.setattr(files, "_NO_DATA_S", 0.05)
    assert "gave no data for 0.05 s" in refusal(f"/dev/fd/{read}")
    os.write(write, b"x" * 2000)
    assert "more than 1000 B; at most 1000 B are read" in refusal(
        f"/dev/fd/{read}", lambda path, what: files.read_bytes(path, what, 1000)
    )
    os.close(read)
    os.close(write)


def test_what_is_too_large_is_refused_before_it_takes_memory(tmp_path, monkeypatch):
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, 1 << 40)
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 1 << 22)
    tracemalloc.start()
    for read in (files.read_bytes, files.read_text, files.read_json):
        assert "has 1 TiB; at most" in refusal(path, read)
    assert "line 1 has more than" in refusal(path, lambda *given: list(files.read_whole_lines(*given)))
    os.truncate(path, 1 << 20)
    monkeypatch.setattr(memory, "available_memory_bytes", lambda: 1 << 20)
    assert "take about 8 MiB of memory, and 1 MiB are available" in refusal(path, files.read_text)
    assert "take about 2 MiB of memory, and 1 MiB are available" in refusal(path)
    assert "take about 2 MiB of memory" in refusal(path, lambda *given: files.read_bytes(*given, None))
    assert len(list(files.read_blocks(path, "file"))) == 1
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()


def test_text_is_utf_8_without_nul(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    assert files.read_text(path, "file") == "a\nb\nc\n"
    path.write_bytes(b"a\nM\xfcller\n")
    assert "(byte 4 is not UTF-8)" in refusal(path, files.read_text)
    assert files.read_text(path, "file", errors="surrogateescape") == "a\nM\udcfcller\n"
    assert "(line 2 is not UTF-8)" in refusal(path, lambda *given: list(files.read_whole_lines(*given)))
    path.write_bytes(b"a\nb\0\n")
    assert "(line 2 has a NUL byte)" in refusal(path, files.read_text)


def test_lines_longer_than_what_is_read_at_once_are_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_BLOCK_BYTES", 3)
    (tmp_path / "lines").write_text("\ufeffeins\n\nzwei \u2028drei\r\nunended")
    assert list(files.read_whole_lines(tmp_path / "lines", "file")) == ["eins", "", "zwei \u2028drei\r"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1e999}', "the number 1e999 is beyond floating point"),
        (f'{{"a": {10**400}}}', f"the number 1{'0' * 29}... of 401 characters is beyond floating point"),
        ('{"a": NaN}', "NaN is no number of JSON"),
        ('{"a": -Infinity}', "-Infinity is no number of JSON"),
        (f'{{"a": {"[" * 100}{"]" * 100}}}', "nested more than 64 levels deep"),
        (f'{{"a": {"[" * 100_000}', "nested more than 64 levels deep"),
        (f'{{"x": "\\ud800", "a": {"[" * 100_000}', "nested more than 64 levels deep"),
        (f'{{"x": {"9" * 310}e-300, "a": {"[" * 100_000}', "nested more than 64 levels deep"),
        ('{"a": }', "line 1: Expecting value"),
    ],
)
def test_json_is_what_every_reader_takes(tmp_path, text, says):
    path = tmp_path / "file.json"
    path.write_text(text)
    assert says in refusal(path, files.read_json)


def test_large_json_is_read_without_copies_of_its_text(tmp_path, monkeypatch):
    path = tmp_path / "file.json"
    value = {"a": [1.5, "\u00fc"], "b": None}
    monkeypatch.setattr(json_text, "_LARGE_JSON_BYTES", 8)
    files.write_json(path, value)
    assert files.read_json(path, "file") == value
    path.write_bytes(b'\xef\xbb\xbf{"name": "M\\udcfcller", "a": [1]}')
    assert files.read_json(path, "file")["name"] == "M\udcfcller"
    path.write_text(f'{{"a": {"[" * 100_000}')
    assert "nested more than 64 levels deep" in refusal(path, files.read_json)
    path.write_bytes(b'"a": 1,\n' * (1 << 20) + b"\0\xff")
    tracemalloc.start()
    assert "is not usable JSON" in refusal(path, files.read_json)
    assert tracemalloc.get_traced_memory()[1] < 1.6 * path.stat().st_size
    tracemalloc.stop()


def test_json_keeps_names_that_are_not_utf_8(tmp_path):
    path = tmp_path / "file.json"
    files.write_json(path, {"name": "M\udcfcller", "flat": [[1], {"a": [2.5]}] * 100})
    assert files.read_json(path, "file")["name"] == "M\udcfcller"


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.EROFS, InputError), (errno.EACCES, InputError), (errno.ELOOP, InputError),
     (errno.ENOSPC, WorkError), (errno.EIO, WorkError), (errno.EDQUOT, WorkError)],
)  # fmt: skip
def test_a_place_that_takes_no_files_is_input_and_a_full_or_broken_disk_is_work(
    tmp_path, monkeypatch, number, kind
):
    def fail(*_args, **_options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files, "_temporary_file", fail)
    with pytest.raises(kind, match="cannot write"):
        files.write_text(tmp_path / "x", "text")
