"""`earlybird project`: what changes would save in the phases of a recorded program."""

from earlybird.cli.options.command import FORMAT, make_command
from earlybird.cli.options.projection import ChangeOptions, PhaseOption, RecordingArgument
from earlybird.present.render.data import Format
from earlybird.present.subjects.program.terminal import MORE_CHANGES, print_projection


def project(
    recording: RecordingArgument, changes: ChangeOptions, phase: PhaseOption = None, format: Format = FORMAT
) -> None:
    """Project what changes would save in each phase of a recorded program.

    The predicted difference is subtracted from the recorded time: of another layout, of one message per pair
    of ranks, of partitions that are sent early, of a communicator for each thread, of another algorithm of a
    collective, of another MPI. The profile must be of the machine and MPI of the recording.
    """
    print_projection(changes.project(recording, phase), format, "" if changes.are_given else MORE_CHANGES)


command = make_command(
    project,
    name="project",
    example="earlybird project rec --profile profile.json --layout 2x1x4 --to-layout 4x1x2 --partitions 4",
)
