"""Prints a projection: the phases as recorded and predicted, and the time of each with every change."""

from earlybird.data.labels import capital
from earlybird.data.projection import Projection
from earlybird.present.render.data import Format, print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_captioned, print_line
from earlybird.present.subjects.program.chapter import basis, verdict
from earlybird.present.subjects.program.tables import tables
from earlybird.present.subjects.program.view import Projected

MORE_CHANGES = "; add some with --to-layout, --to-profile or --partitions"
_CSV = ("phase", "kind", "change", "recorded_s", "time_s", "time_low_s", "time_high_s", "speed_up",
        "speed_up_low", "speed_up_high", "run_speed_up", "run_speed_up_low", "run_speed_up_high",
        "action", "reason")  # fmt: skip


def print_projection(projection: Projection, format: Format, hint: str = "") -> None:
    """Print a projection; as CSV, the changes. `hint`: how to ask for more, printed if there is none."""
    for remark in projection.remarks():
        note(f"warning: {remark}")
    records = [
        {"phase": phase.number, "recorded_s": phase.time_s} | change.to_json()
        for phase in projection.phases
        for change in phase.changes
    ]
    if print_data(format, projection.to_json(), records, _CSV):
        return
    projected = Projected(projection)
    print_line(projected.run_text)
    print_line(f"{capital(verdict(projected))}{'' if projected.gains else hint}.")
    for table in tables(projected):
        print_captioned(table)
    print_line()
    for gain in projected.gains:
        if gain.change.reason:
            print_line(f"Phase {gain.phase.number}, {gain.name}: {gain.change.reason}.")
    for sentence in basis(projected):
        print_line(sentence)
