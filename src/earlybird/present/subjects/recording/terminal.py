"""Prints a recording: what it says, and its tables; or its sums as JSON, or the pairs of ranks as CSV."""

from collections.abc import Mapping
from typing import Any

from earlybird.analysis.gaps import remarks
from earlybird.data.recording import Recording
from earlybird.present.render.data import Format, print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_captioned, print_line, prints_all
from earlybird.present.subjects.recording.answer import facts, known_of_waits, sentences
from earlybird.present.subjects.recording.summary import summary_of
from earlybird.present.subjects.recording.tables import brief_tables
from earlybird.present.subjects.recording.view import Recorded

_MAX_SETTINGS = 6
_CSV = ("src", "dst", "messages", "bytes")


def print_recording(recording: Recording, format: Format, more: Mapping[str, Any] | None = None) -> None:
    """Print a recording; warnings of what it does not contain on stderr. `more`: further keys of the JSON."""
    for sentence in remarks(recording):
        note(f"warning: {sentence}")
    recorded = Recorded(recording, str(recording.path), str(recording.path))
    summary = summary_of(recorded)
    if print_data(format, {**(more or {}), **summary}, summary["pairs"], _CSV):
        return
    print_line(f"{'watched' if recording.is_watched else 'recording'} {recorded.title}")
    settings = None if prints_all() else _MAX_SETTINGS
    said = sentences(recorded)
    # Why it hung matters more than the conditions of the run.
    first = said[: recording.where is not None]
    for line in (*first, *facts(recorded, settings), *said[len(first) :], *known_of_waits(recorded)):
        print_line(line)
    for table in brief_tables(recorded, "in `earlybird show --all`", prints_all()):
        print_captioned(table)
