"""Remarks on the sums of a recording: ranks without a file or an end, other jobs, shared cores."""

from collections.abc import Sequence

from earlybird.data import labels, units
from earlybird.data.recording import MIN_CORE_WAIT, Recording
from earlybird.data.shell_commands import path_argument

_MAX_RANKS, _MAX_OPEN = 8, 8
# Of a page that was not mapped: see native/recorder/recording/open_calls.h.
_WHEN_WRITTEN = " when that was last written"


def remarks(recording: Recording) -> list[str]:
    """Return a sentence for each part that the sums do not contain, and one if ranks shared cores."""
    said = []
    if recording.uses_sessions:
        said.append(
            "the program uses MPI sessions: what it sends outside of MPI_Init and MPI_Finalize is not "
            "recorded"
        )
    elif recording.hidden:
        call, library = recording.hidden
        said.append(
            f"{call} of {library} precedes the recorder's, so what the program calls there is not recorded"
            f"{'' if recording.ranks else ': nothing was'}; {_how_to_reach(call, library)}"
        )
    elif recording.empty and not recording.ranks:
        said.append(
            f"nothing was recorded: {named_ranks(recording.empty)} left an empty file, as on a full disk; "
            "free some space and record again"
        )
    elif not recording.ranks:
        said.append(
            "no rank called MPI_Init of an MPI that the recorder reaches, so nothing was recorded; check "
            "that the command starts an MPI program that is linked with the shared library of this MPI; if "
            f"the files are on other nodes, copy them to {recording.path} and run `earlybird record --merge "
            f"{path_argument(recording.path)}`"
        )
    elif recording.size == 1:
        said.append(
            "the job has one rank, which can send to nobody else; to start more, put the launcher into the "
            "command, as in `mpiexec -n 4 ./app`"
        )
    said += lost_parts(recording)
    if recording.num_other:
        said.append(
            f"{recording.num_other} more ranks are of spawned processes or of a second job and are not "
            "included"
        )
    waited = recording.core_wait_share
    if waited is not None and waited >= MIN_CORE_WAIT:
        said.append(
            f"ranks waited for a core in {labels.percent(waited)} of the run, so times in the MPI and waits "
            "are the scheduler's; use fewer ranks or more cores"
        )
    return said


def _how_to_reach(call: str, hider: str) -> str:
    """Return the remedy for a function that is called in place of the recorder's: one of a library or of the
    program itself."""
    if ".so" in hider.rpartition("/")[2]:
        return "record without this tool"
    return (
        f"the program defines {call} itself: link it with the shared MPI, or let its wrapper call the next "
        f"library's {call}"
    )


def lost_parts(recording: Recording) -> list[str]:
    """Return a sentence for the ranks that left no file, and for each way in which ranks ended early."""
    if recording.is_watched:
        return []
    said = []
    empty = [rank for rank in recording.missing if rank in recording.empty]
    absent = [rank for rank in recording.missing if rank not in recording.empty]
    for missing, left in ((absent, "no file"), (empty, "an empty file, as on a full disk")):
        if missing:
            them = "them" if len(missing) > 1 else "it"
            said.append(
                f"{named_ranks(missing)} left {left}, so only what others received from {them} is counted"
            )
    for rank, one in recording.ranks.items():
        if one.is_damaged:
            said.append(
                f"rank-{rank}.ebr is damaged, so only what rank {rank} counted in the first "
                f"{units.format_seconds(one.run_s)} after MPI_Init is included; record again"
            )
    for how, text in (
        (
            None,
            "did not reach the end of MPI_Finalize: killed, interrupted, on a full disk, or still running",
        ),
        ("abort", "called MPI_Abort"),
        ("exit", "exited without MPI_Finalize"),
    ):
        if how == "exit" and recording.hidden:
            continue  # MPI_Finalize may be what was not recorded
        early = [
            rank
            for rank in recording.ended_early
            if recording.ranks[rank].end == how and not recording.ranks[rank].is_damaged
        ]
        if early:
            last_s = min(recording.ranks[rank].run_s for rank in early)
            kept = f"what is counted ends {units.format_seconds(last_s)} after MPI_Init at the earliest"
            said.append(f"{named_ranks(early)} {text}; {kept}")
    return said + unreturned_calls(recording)


def unreturned_calls(recording: Recording) -> list[str]:
    """Return a sentence for each call in which ranks were when they ended without a message."""
    ranks: dict[tuple[str, bool], list[int]] = {}
    for rank, one in recording.ranks.items():
        opened = one.open_call
        if opened is None:
            continue
        where = f" in {opened.site.place}" if opened.site and opened.site.place else ""
        peer = f" with rank {opened.peer}" if opened.peer >= 0 else ""
        ranks.setdefault((f"{opened.call}{where}{peer}", opened.seen_s is not None), []).append(rank)
    said = [
        f"{named_ranks(of_call)} had not returned from {text}{_WHEN_WRITTEN if is_dated else ''}"
        for (text, is_dated), of_call in ranks.items()
    ]
    if len(said) > _MAX_OPEN:
        said = [*said[:_MAX_OPEN], f"{len(said) - _MAX_OPEN} more calls had not returned"]
    return said


def named_ranks(ranks: Sequence[int]) -> str:
    """Return a text such as `ranks 0, 1`, with the first ranks only if there are many."""
    names = ", ".join(map(str, ranks[:_MAX_RANKS]))
    more = f" and {len(ranks) - _MAX_RANKS} more" if len(ranks) > _MAX_RANKS else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {names}{more}"
