"""What a recording says, in sentences: calls, work, waits, threads and messages."""

from collections.abc import Sequence

from earlybird.analysis.calls import FINALIZE, CallTimes
from earlybird.analysis.conditions import conditions
from earlybird.analysis.gaps import unreturned_calls
from earlybird.analysis.messages import bytes_by_rank, main_sender
from earlybird.analysis.wait_remarks import wait_remarks
from earlybird.analysis.waits import Waits
from earlybird.data import labels
from earlybird.data.shell_commands import path_argument
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core.parts import Answer
from earlybird.present.subjects.recording.tables import CAUSE_NAMES
from earlybird.present.subjects.recording.view import Recorded

WATCHED = "The ranks were watched by `earlybird exec --stuck`: no calls and messages were counted."
NO_TIME = "No MPI call took measurable time after MPI_Init."


def answers(all_recorded: Sequence[Recorded]) -> list[Answer]:
    """Return the lines of recordings on the first screen; commands that differ from those of an earlier one
    in the recording alone are said for that one."""
    lines: list[Answer] = []
    first: dict[tuple[str, ...], str] = {}  # the recording whose answer has these commands
    for recorded in all_recorded:
        if recorded.recording.is_watched:
            lines.append(_answer_of_watched(recorded))
        elif recorded.calls.in_run:
            commands = _commands(recorded, recorded.path)
            same = first.setdefault(tuple(_commands(recorded, "")), recorded.name)
            if commands and same != recorded.name:
                commands = [f"the commands of {same} apply to {recorded.name}, too"]
            lines.append(_recorded_answer(recorded, commands))
    return lines


def _recorded_answer(recorded: Recorded, commands: Sequence[str]) -> Answer:
    """Return the share of MPI, and the next action."""
    in_mpi, is_hung = recorded.calls.whole, _is_hung(recorded)
    low, high = labels.percent(in_mpi.spread.low), labels.percent(in_mpi.spread.high)
    remedies = ["find what the calls that had not returned wait for"] if is_hung else []
    remedies += [recorded.uneven_work_remedy] if recorded.uneven_work else []
    return Answer(
        f"Program recorded in {recorded.name}, {labels.counted(recorded.recording.size, 'rank')}",
        "did not end" if is_hung else f"{labels.percent(in_mpi.share)} in MPI",
        f"{low} to {high} by rank" if low != high and not is_hung else "",
        " ".join(sentences(recorded)),
        "; ".join([*remedies, *commands]),
    )


def _commands(recorded: Recorded, path: str) -> list[str]:
    """Return what to run, with its purpose before, if the recording is at `path`."""
    is_hung = _is_hung(recorded)
    commands = []
    if not is_hung:
        command = f"`earlybird advise program {path_argument(path)} --profile profile.json`"
        commands.append(f"to rank changes of the program, run {command}")
    if recorded.heaviest:
        command = f"`earlybird pattern recording {path_argument(path)} -o exchange.csv`"
        commands.append(f"to predict the exchange on another layout or machine, first run {command}")
    if is_hung and recorded.recording.where is None:
        commands.append("to see who waits for whom, record again with `--stuck 60s`")
    elif recorded.waits is None and not is_hung:
        commands.append("to see who waits for whom, record again with `--events 10000`")
    return commands


def _answer_of_watched(recorded: Recorded) -> Answer:
    return Answer(
        f"Program watched in {recorded.name}, {labels.counted(recorded.recording.size, 'rank')}",
        "was stuck, or did not end",
        "",
        " ".join(sentences(recorded)),
        "to see messages and times of calls, record the program with `earlybird record`",
    )


def facts(recorded: Recorded, most_settings: int | None = None) -> list[str]:
    """Return the conditions of the run and the messages in all, a sentence each."""
    if not recorded.recording.ranks or recorded.recording.is_watched:
        return []
    settings = conditions(recorded.recording, most_settings)
    counts = [
        f"{name}: {sum(pair.messages for pair in pairs)}, {format_bytes(sum(pair.bytes for pair in pairs))}."
        for name, pairs in (("Messages", recorded.heaviest), ("One-sided", recorded.one_sided))
        if pairs or name == "Messages"
    ]
    return [*([f"Settings: {settings}."] if settings else []), *counts]


def known_of_waits(recorded: Recorded) -> list[str]:
    """Return the facts to know about the waits, a sentence each."""
    remarks = wait_remarks(recorded.recording, recorded.waits) if recorded.waits else []
    return [f"{labels.capital(remark)}." for remark in remarks]


def sentences(recorded: Recorded) -> list[str]:
    """Return the statements of the recording, the costliest first."""
    if not recorded.recording.ranks:
        return ["Nothing was recorded."]
    if recorded.recording.is_watched:
        return [*filter(None, [_hang(recorded)]), WATCHED]
    parts = (
        _hang(recorded),
        _calls(recorded),
        _work(recorded),
        _waits(recorded),
        _threads(recorded),
        _pairs(recorded),
    )
    return [part for part in parts if part]


def _hang(recorded: Recorded) -> str:
    """Return who waited for whom when the ranks were ended, or the calls in which they were; earlier calls
    are of less interest."""
    if recorded.recording.where is not None:
        return recorded.recording.where.sentence
    return " ".join(f"{labels.capital(text)}." for text in unreturned_calls(recorded.recording))


def _calls(recorded: Recorded) -> str:
    """Name the call with most time, its share of the run, and its lowest and highest rank."""
    calls, call = recorded.calls, recorded.calls.costliest
    opened = [each for rank in recorded.recording.ranks.values() for each in rank.open_calls]
    if any(each.open_s is None for each in opened):
        return ""  # most of the time may be in those
    if call is None:
        return NO_TIME
    of_which = "all calls" if call.name == calls.names[calls.in_run[0]] else f"all calls before {FINALIZE}"
    text = f"{call.name} takes the most time of {of_which}: {labels.percent(call.share)} of the run"
    low, high = labels.percent(call.spread.low), labels.percent(call.spread.high)
    if low != high:
        text += f", from {low} on rank {call.spread.low_rank} to {high} on rank {call.spread.high_rank}"
    return f"{text}. All calls together take {labels.percent(calls.whole.share)}.{_of_threads(calls)}"


def _of_threads(calls: CallTimes) -> str:
    """Return what 100 % is where times of several threads add up."""
    if calls.num_threads <= 1:
        return ""
    return f" Times of a rank's threads, up to {calls.num_threads}, add up: 100 % is the run of one thread."


def _work(recorded: Recorded) -> str:
    """Return how much even work could save, as a sentence."""
    return f"{labels.capital(recorded.uneven_work)}." if recorded.uneven_work else ""


def _waits(recorded: Recorded) -> str:
    """Say how much of the time in MPI is waiting, for what, and for whom most."""
    waits = recorded.waits
    if waits is None or not waits.in_mpi_s.any():
        return ""
    if not waits.waiting_s.any():
        calls = "call that has returned" if _is_hung(recorded) else "call"
        return f"No {calls} waits for another rank, as far as that is known."
    when = "" if waits.reaches_back else f" in the last {format_seconds(float(waits.window_s.max()))}"
    text = f"Of the time in MPI{when}, {labels.percent(waits.share_waiting)} is waiting"
    return f"{text}." if waits.is_little else f"{text}: {_causes(waits)}."


def _is_hung(recorded: Recorded) -> bool:
    return recorded.recording.where is not None or bool(unreturned_calls(recorded.recording))


def _causes(waits: Waits) -> str:
    shares = [
        f"{labels.percent(share)} for {CAUSE_NAMES[cause]}" for cause, share in waits.main_causes.items()
    ]
    rank, share = waits.latest_rank
    return f"{', '.join(shares)}; {labels.percent(share)} of the waiting is for rank {rank}"


def _threads(recorded: Recorded) -> str:
    """Say how much earlier threads arrive than the last one, before the sends of the costliest phase."""
    if not recorded.arrivals:
        return ""
    phase, arrivals = recorded.arrivals[0]
    return (
        f"Before the sends of phase {phase.number}, threads reach the end of {arrivals.function} "
        f"{format_seconds(arrivals.mean_lead_s)} before the last one."
    )


def _pairs(recorded: Recorded) -> str:
    """Name the pair with most bytes, and a rank that sends much more than the mean."""
    if not recorded.heaviest:
        return ""
    pair, total = recorded.heaviest[0], int(recorded.pairs.bytes.sum())
    num_alike = sum(other.bytes == pair.bytes for other in recorded.heaviest)
    ranks, size = f"rank {pair.src} to rank {pair.dst}", format_bytes(pair.bytes)
    share = _share_of_all(pair.bytes / max(total, 1))
    if num_alike > 1:
        text = f"{num_alike} pairs have the most bytes, {size} each, {share}; one is {ranks}."
    else:
        messages = labels.counted(pair.messages, "message")
        text = f"The pair with most bytes is {ranks}: {size} in {messages}, {share}."
    sent, _ = bytes_by_rank(recorded.pairs, recorded.recording.size)
    if sender := main_sender(sent):
        text += f" Rank {sender[0]} sends {sender[1]:.1f} times the mean of all ranks."
    return text


def _share_of_all(share: float) -> str:
    return "less than 0.1 % of all" if share < 0.001 else f"{labels.percent(share)} of all"
