"""Files: readers see the old text or the new, and appended lines are whole or absent."""

import errno
import json
import os
import stat

import pytest

from earlybird.data import files
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
    with pytest.raises(WorkError, match=r"No space left on device.*free some space"):
        files.write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_full_device_as_output_is_reported_and_stays_a_device():
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with pytest.raises(WorkError, match="No space left on device"):
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
        with pytest.raises(WorkError, match="File too large"):
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
