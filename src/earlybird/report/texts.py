"""Text that several chapters share: intervals, and the fastest method by size."""

from collections.abc import Callable, Sequence
from itertools import groupby

from earlybird.data import labels
from earlybird.data.results import Result
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bytes, format_seconds
from earlybird.report.parts import Answer

_MAX_SPANS = 4  # of sizes in a sentence


def star(is_crowded: bool, what: str = "threads") -> str:
    """The end of the caption of a table that marks measurements with more threads or ranks than cores."""
    return f" (*: more {what} than cores)" if is_crowded else ""


def ratio(value: float) -> str:
    return f"{value:.2f}"


def spread(estimate: Estimate | None, text: Callable[[float], str]) -> str:
    """`2.20 to 2.60`; "" without an interval."""
    if estimate is None or text(estimate.low) == text(estimate.high):
        return ""
    return f"{text(estimate.low)} to {text(estimate.high)}"


def value_and_spread(estimate: Estimate | None, text: Callable[[float], str]) -> str:
    """`2.40 (2.20 to 2.60)`; `-` if it is unknown."""
    if estimate is None:
        return "-"
    interval = spread(estimate, text)
    return text(estimate.value) + (f" ({interval})" if interval else "")


def fastest_answer(what: str, finding: str, fastest: Result, reference: str, command: str) -> Answer:
    """The answer that names the fastest method measured, with its speed-up over the `reference` if known."""
    do = f"run `{command} --profile profile.json` for the setting that selects it"
    time = format_seconds(fastest.time_s.value)
    if fastest.speed_up is None:
        return Answer(what, time, spread(fastest.time_s, format_seconds), f"{finding}.", do)
    number, interval = f"speed-up {fastest.speed_up.value:.2f}", spread(fastest.speed_up, ratio)
    return Answer(what, number, interval, f"{finding}, {time}; speed-up over {reference}.", do)


def fastest_by_size(noun: str, best: Sequence[str], sizes_bytes: Sequence[int]) -> str:
    """`Fastest: single message up to 64 KiB and libearlybird from 128 KiB.`, from the best method at each
    size."""
    if "" in best:
        return "The clock did not resolve every time."
    spans = []
    for method, group in groupby(zip(best, sizes_bytes, strict=True), key=lambda pair: pair[0]):
        sizes = [size_bytes for _, size_bytes in group]
        spans.append((labels.method(method), sizes[0], sizes[-1]))
    if len(spans) == 1:
        return f"No {noun} is clearly faster than {spans[0][0]} at any size."
    return f"Fastest: {spans_text(spans)}."


def spans_text(spans: Sequence[tuple[str, int, int]]) -> str:
    """`single message up to 64 KiB and libearlybird from 128 KiB`, from names with first and last size."""
    (name, _, last), *others = spans
    texts = [f"{other} from {format_bytes(first)}" for other, first, _ in others]
    return labels.listed_briefly([f"{name} up to {format_bytes(last)}", *texts], _MAX_SPANS)
