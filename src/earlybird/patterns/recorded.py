"""The messages of a recording as the pattern of one exchange."""

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.pattern import Pattern
from earlybird.data.recording import Recording

# More rows make a pattern that no one replays.
MOST_MESSAGES = 1_000_000


def recorded_exchange(
    recording: Recording, *, combined: bool = False, one_sided: bool = False
) -> tuple[Pattern, int]:
    """All messages of the run as one exchange, and the number of messages from ranks to themselves left out.

    Counts and bytes of every pair are exact. A recording keeps no single sizes: the messages of a pair in one
    size class, a power of two wide, get equal sizes, up to a byte. `combined`: one message for each pair.
    `one_sided`: data that MPI_Put, MPI_Get and the like moved is included, each call as a message.
    Raises InputError for more than MOST_MESSAGES messages.
    """
    totals = recording.sent().joined(recording.one_sided()) if one_sided else recording.sent()
    if combined:
        totals = totals.by_pair()
    is_other = totals.src != totals.dst
    src, dst, total_bytes = totals.src[is_other], totals.dst[is_other], totals.bytes[is_other]
    messages = np.ones_like(src) if combined else totals.messages[is_other]
    if messages.sum() > MOST_MESSAGES:
        raise InputError(
            f"the recording has {messages.sum()} messages, and a pattern is at most {MOST_MESSAGES}; give "
            "--combined for one message per pair"
        )
    number = np.arange(messages.sum()) - np.repeat(np.cumsum(messages) - messages, messages)
    size = np.repeat(total_bytes // messages, messages) + (
        number < np.repeat(total_bytes % messages, messages)
    )
    left_out = int(totals.messages[~is_other].sum())
    return Pattern(np.repeat(src, messages), np.repeat(dst, messages), size), left_out
