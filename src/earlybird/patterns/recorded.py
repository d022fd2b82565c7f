"""The messages of a recording as the pattern of one exchange."""

from dataclasses import dataclass

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.pattern import Pattern
from earlybird.data.phases import Phase, find_phases
from earlybird.data.recording import PairTotals, Recording

_MAX_NAMED = 8
# More rows make a pattern that no one replays.
MAX_MESSAGES = 1_000_000


@dataclass(frozen=True, eq=False)
class RecordedExchange:
    """A pattern from a recording.

    Attributes
    ----------
    left_out : number of messages from ranks to themselves, which a pattern does not have.
    num_unequal : number of pairs of ranks whose messages have mean sizes, because the sizes differ between
        epochs.
    """

    pattern: Pattern
    left_out: int
    num_unequal: int = 0


def heaviest_phase(recording: Recording, *, one_sided: bool = False) -> Phase:
    """Return the phase with most bytes of messages; raise InputError if none has a message."""
    phases = find_phases(recording)
    sums = [int(phase.sent(recording, one_sided=one_sided).bytes.sum()) for phase in phases]
    if not phases or max(sums) == 0:
        has_others = not one_sided and recording.one_sided().messages.sum() > 0
        what = "give --one-sided for what MPI_Put and MPI_Get moved" if has_others else "see `earlybird show`"
        raise InputError(f"no phase of {recording.path} has a message between ranks; {what}")
    return phases[sums.index(max(sums))]


def phase_of(recording: Recording, number: int) -> Phase:
    """Return a phase by its number; raise InputError if there is none."""
    phases = find_phases(recording)
    if not 1 <= number <= len(phases):
        raise InputError(
            f"the recording has phases 1 to {len(phases)}, --phase is {number}; give one of them"
        )
    return phases[number - 1]


def check_messages(recording: Recording, phase: Phase, *, one_sided: bool = False) -> None:
    """Raise InputError for a phase in which no rank sends to another one, with the phases in which one
    does.
    """

    def sends(one: Phase, one_sided: bool) -> bool:
        sent = one.sent(recording, one_sided=one_sided)
        return bool((sent.src != sent.dst).any())

    if sends(phase, one_sided):
        return
    what = f"phase {phase.number} has no message between ranks"
    if not one_sided and sends(phase, True):
        raise InputError(f"{what}; give --one-sided for what MPI_Put and MPI_Get moved")
    numbers = [one.number for one in find_phases(recording) if sends(one, one_sided)]
    if not numbers:
        raise InputError(f"{what}, and neither has another one; see `earlybird show`")
    named = ", ".join(map(str, numbers[:_MAX_NAMED]))
    more = f" and {len(numbers) - _MAX_NAMED} others" if len(numbers) > _MAX_NAMED else ""
    these = f"phases {named}{more} have" if len(numbers) > 1 else f"phase {named} has"
    raise InputError(f"{what}; {these} some: give --phase {numbers[0]}")


def exchange_of_all(
    recording: Recording, *, combined: bool = False, one_sided: bool = False
) -> RecordedExchange:
    """Return all messages of the run as one exchange; counts and bytes of every pair are exact."""
    totals = recording.sent().joined(recording.one_sided()) if one_sided else recording.sent()
    return RecordedExchange(*exchange_of(totals, combined=combined))


def exchange_of(totals: PairTotals, *, combined: bool = False) -> tuple[Pattern, int]:
    """Return the messages of `totals` as one exchange, and the number of messages from ranks to themselves
    left out.

    Counts and bytes of every pair are exact. Sums do not keep single sizes: the messages of a pair in one
    size class, a power of two wide, get equal sizes, up to a byte. `combined`: one message for each pair.
    Raises InputError for more than MAX_MESSAGES messages.
    """
    if combined:
        totals = totals.by_pair()
    is_other = totals.src != totals.dst
    src, dst, total_bytes = totals.src[is_other], totals.dst[is_other], totals.bytes[is_other]
    messages = np.ones_like(src) if combined else totals.messages[is_other]
    if messages.sum() > MAX_MESSAGES:
        remedy = "choose another --phase" if combined else "give --combined for one message per pair"
        raise InputError(
            f"there are {messages.sum()} messages, and a pattern has at most {MAX_MESSAGES}; {remedy}"
        )
    number = np.arange(messages.sum()) - np.repeat(np.cumsum(messages) - messages, messages)
    size = np.repeat(total_bytes // messages, messages) + (
        number < np.repeat(total_bytes % messages, messages)
    )
    left_out = int(totals.messages[~is_other].sum())
    return Pattern(np.repeat(src, messages), np.repeat(dst, messages), size), left_out
