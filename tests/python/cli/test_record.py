"""What `earlybird record` prints where it cannot write beside the files of the ranks."""

import pytest

from earlybird.cli.commands import record
from earlybird.data.errors import InputError, WorkError
from tests import recordings


@pytest.mark.parametrize(
    "error",
    [WorkError("cannot write it: No space left; free some"), InputError("cannot write it: denied; choose")],
)
def test_functions_that_cannot_be_written_leave_the_recording_readable(
    in_process, monkeypatch, tmp_path, error
):
    def refuse(*_):
        raise error

    folder = recordings.on_disk(tmp_path / "my rec", 4, recordings.ring(4))
    monkeypatch.setattr(record, "function_names", lambda module, places: dict.fromkeys(places, "main"))
    monkeypatch.setattr(record, "save_functions", refuse)
    result = in_process("record", "--merge", folder)
    assert result.returncode == 0 and "4 of 4 ranks" in result.stdout
    warning, following = result.stderr.splitlines()
    assert following == f"next: earlybird report '{folder}' -o report.html"
    assert warning.startswith(f"warning: functions are not named: {str(error).partition(';')[0]}; ")
    assert warning.endswith(f"`earlybird record --merge '{folder}'`")


def test_waits_are_shown_or_said_to_be_none(in_process, tmp_path):
    folder = recordings.on_disk(tmp_path / "rec", 4, recordings.ring(4))
    recordings.add_traces(folder, 4)
    shown = in_process("show", folder).stdout
    assert "late sender" in shown and "no call waits" not in shown
    alone = recordings.on_disk(tmp_path / "alone", 1, [])
    recordings.add_traces(alone, 1)
    assert "no call waits for another rank" in in_process("show", alone).stdout
