"""What tells phases of a recording apart that have the same calls in the same functions."""

from collections.abc import Callable, Sequence

import numpy as np

from earlybird.data.phases import Phase
from earlybird.data.recording import Recording
from earlybird.data.units import format_bytes

_MAX_OFFSETS = 3


def distinctions(recording: Recording, phases: Sequence[Phase]) -> dict[int, str]:
    """Return, by the number of a phase, what distinguishes it from the phases of its kind; "" for the only
    phase of its kind.

    It is the first of these that is different in all of them, or otherwise all together: file and line, the
    direction of messages, their size, the level of MPI_Pcontrol, and the place in the module.
    """
    alike: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Phase]] = {}
    for phase in phases:
        alike.setdefault((tuple(phase.calls), tuple(phase.functions)), []).append(phase)
    names: dict[int, str] = {}
    for kind in alike.values():
        names |= dict.fromkeys((phase.number for phase in kind), "")
        if len(kind) > 1:
            names |= {
                phase.number: text for phase, text in zip(kind, _different(recording, kind), strict=True)
            }
    return names


def _different(recording: Recording, kind: Sequence[Phase]) -> list[str]:
    describe: tuple[Callable[[Phase], str], ...] = (
        _line,
        lambda phase: _direction(recording, phase),
        lambda phase: _size(recording, phase),
        _level,
        _module,
    )
    texts = [[of(phase) for phase in kind] for of in describe]
    several = [column for column in texts if len(set(column)) > 1]
    for column in several:
        if len(set(column)) == len(kind):
            return column
    return (
        [", ".join(filter(None, row)) for row in zip(*several, strict=True)] if several else [""] * len(kind)
    )


def _line(phase: Phase) -> str:
    """Return file and line of the first call, such as `halo.c:31`."""
    first = phase.steps[0] if phase.steps else None
    return f"{first.file.rpartition('/')[2]}:{first.line}" if first and first.line else ""


def _direction(recording: Recording, phase: Phase) -> str:
    """Return `to rank +1`, `to ranks -1, +1`, or the number of distances; the ranks form a ring."""
    sent, size = phase.sent(recording), max(recording.size, 1)
    offsets = np.unique((sent.dst - sent.src + (size - 1) // 2) % size - (size - 1) // 2)
    offsets = offsets[offsets != 0].tolist()
    if not offsets:
        return ""
    if len(offsets) > _MAX_OFFSETS:
        return f"to {len(offsets)} distances"
    return f"to rank{'s' if len(offsets) > 1 else ''} {', '.join(f'{offset:+d}' for offset in offsets)}"


def _size(recording: Recording, phase: Phase) -> str:
    sent = phase.sent(recording)
    messages = int(sent.messages.sum())
    return f"messages of {format_bytes(int(sent.bytes.sum()) / messages)}" if messages else ""


def _level(phase: Phase) -> str:
    return f"level {phase.region}"


def _module(phase: Phase) -> str:
    first = phase.steps[0] if phase.steps else None
    return f"{first.module.rpartition('/')[2]}+{first.offset:#x}" if first else ""
