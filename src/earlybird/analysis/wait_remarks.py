"""What to know of the waits of a recording: how much is not known, and which receives have no send."""

from earlybird.analysis.waits import NO_SEND, OTHER_COMMUNICATOR, OTHER_SENDS, PEER_OUTSIDE, Waits
from earlybird.data import units
from earlybird.data.recording import Recording

_MORE = "record more with --events"
_WHY_UNMATCHED = {
    NO_SEND: "their sends are not in the traces",
    OTHER_COMMUNICATOR: "their communicators could not be matched",
    OTHER_SENDS: "the sends of their pair and tag have other sizes, or are more or less than they",
}


def wait_remarks(recording: Recording, waits: Waits) -> list[str]:
    """Return a clause for each fact that a reader of the waits must know."""
    remarks = []
    if waits.unknown:
        remarks.append(f"of {waits.unknown}, it is not known how much is waiting")
    if PEER_OUTSIDE in waits.main_causes:
        remarks.append(
            "the waiting for a peer outside the MPI is an upper bound: the peer had begun to send or posted "
            "its receive, and then computed"
        )
    if waits.cut:
        remarks.append(waits.cut)
    if not waits.reaches_back:
        reach = units.format_seconds(float(waits.window_s.max()))
        remarks.append(f"waits are those of the last {reach}; {_MORE}")
    num_left = waits.num_received - waits.num_matched
    if num_left:
        reason = _why_unmatched(recording, waits)
        remarks.append(f"{num_left} of {waits.num_received} receives have no known send: {reason}")
    if waits.clock_uncertainty_s:
        by = units.format_seconds(waits.clock_uncertainty_s)
        remarks.append(
            f"clocks of the nodes may be apart by {by} and their drift, and so may waits between nodes"
        )
    return remarks


def has_identities(recording: Recording) -> bool:
    """Return whether every communicator has an identity that is the same on all ranks."""
    return all(
        communicator.identity is not None
        for rank in recording.ranks.values()
        for communicator in rank.communicators.values()
    )


def _why_unmatched(recording: Recording, waits: Waits) -> str:
    """Return why receives have no send, as far as that is known, and the remedy."""
    if recording.ended_early and not waits.reaches_back:
        return f"ranks ended early; {_MORE}"
    if waits.unconnected:
        return "the clocks of some nodes cannot be compared"
    if not waits.reaches_back:
        return f"older records are overwritten; {_MORE}"
    if not has_identities(recording):
        return "communicators with the same ranks are told apart by their names (MPI_Comm_set_name)"
    if waits.cut:
        return "they are of ranks whose traces end early"
    return _WHY_UNMATCHED[waits.unmatched]
