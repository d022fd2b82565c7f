"""Text that several chapters share: intervals, and the best method of a point and by size."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from earlybird.data import labels
from earlybird.data.units import format_bytes, format_seconds
from earlybird.present.core.notation import interval_text, ratio_text
from earlybird.present.core.parts import Answer
from earlybird.present.core.points import HasPoints, Point, methods_of

NOTHING = "nothing to do"
# In the place of a figure.
UNPAIRED = "It compares rounds with a single message and another method; no launch has them."
_MAX_SPANS = 4  # of sizes in a sentence


def crowd(what: str = "threads") -> str:
    """Return the one name of measurements on shared cores: `more threads than cores`."""
    return f"more {what} than cores"


def crowded_sentence(what: str = "threads", where: str = "") -> str:
    """Return what is true of times with more threads or ranks than cores; `where` there were: `In 2 of 4
    settings`."""
    there_were = f"{where} there were {crowd(what)}" if where else labels.capital(crowd(what))
    return f"{there_were}: these times include context switches."


def star(is_crowded: bool, what: str = "threads") -> str:
    """Return the end of the caption of a table that marks measurements with more threads or ranks than
    cores."""
    return f" (*: {crowd(what)})" if is_crowded else ""


def method_names(measured: Iterable[HasPoints]) -> str:
    """Return the names of all methods as tables and options have them."""
    methods = methods_of(point for series in measured for point in series.points)
    listed = labels.listed([f"{labels.method(name)} ({name})" for name in methods])
    return f"Methods, with their names in tables and options: {listed}."


def finding(
    point: Point, noun: str, reference: str, name: Callable[[str], str] = labels.method
) -> tuple[str, str]:
    """Return the best method of a point, and how clear that is: `no method is clearly faster than single
    message`, `libearlybird is the fastest method`, `libearlybird is clearly faster than single message`."""
    method = point.best(reference)
    if len(point.results) == 1:
        return method, f"{name(method)} is the only {noun} that was measured"
    if method == reference:
        return method, f"no {noun} is clearly faster than {name(reference)}"
    if method in point.speeds() and point.leads(method):
        return method, f"{name(method)} is the fastest {noun}"
    if reference in point.results:
        return method, f"{name(method)} is clearly faster than {name(reference)}"
    return method, f"no {noun} is clearly faster than {name(method)}"


def time_text(point: Point, method: str) -> str:
    """Return `30 us, speed-up 1.40 over the MPI's default`."""
    result = point.results[method]
    time = format_seconds(result.time_s.value)
    if result.speed_up is None:
        return time
    return f"{time}, speed-up {result.speed_up.value:.2f} over {labels.method(result.reference)}"


def method_answer(what: str, point: Point, noun: str, reference: str, do: str, more: str = "") -> Answer:
    """Return the answer that names the best method of a point; its action is empty if the method is the
    reference."""
    method, found = finding(point, noun, reference)
    result = point.results[method]
    text = f"{labels.capital(found)}{more}."
    if method == reference:
        do = NOTHING
    if result.speed_up is None or method == reference:
        return Answer(
            what, format_seconds(result.time_s.value), interval_text(result.time_s, format_seconds), text, do
        )
    number, interval = f"speed-up {result.speed_up.value:.2f}", interval_text(result.speed_up, ratio_text)
    over = f"{format_seconds(result.time_s.value)} instead of {_reference_time(point, reference)}"
    return Answer(what, number, interval, f"{labels.capital(found)}: {over}{more}.", do)


def _reference_time(point: Point, reference: str) -> str:
    result = point.results.get(reference)
    name = labels.method(reference)
    return f"{format_seconds(result.time_s.value)} with {name}" if result else name


def best_by_size(noun: str, best: Sequence[str], sizes_bytes: Sequence[int]) -> str:
    """Return `Best: single message up to 64 KiB and libearlybird from 128 KiB.`, from the best methods by
    size."""
    if "" in best:
        return "The clock did not resolve every time."
    spans = []
    for method, group in groupby(zip(best, sizes_bytes, strict=True), key=lambda pair: pair[0]):
        sizes = [size_bytes for _, size_bytes in group]
        spans.append((labels.method(method), sizes[0], sizes[-1]))
    if len(spans) == 1:
        return f"No {noun} is clearly faster than {spans[0][0]} at any size."
    return f"Best: {spans_text(spans)}. Each is clearly faster than the one before where it begins."


def spans_text(spans: Sequence[tuple[str, int, int]]) -> str:
    """Return `single message up to 64 KiB and libearlybird from 128 KiB`, from names with first and last
    size."""
    (name, _, last), *others = spans
    texts = [f"{other} from {format_bytes(first)}" for other, first, _ in others]
    return labels.listed_briefly([f"{name} up to {format_bytes(last)}", *texts], _MAX_SPANS)
