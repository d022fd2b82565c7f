"""The chapter on what to change: advice by predicted gain, each with the command or setting that does it."""

from collections.abc import Mapping, Sequence
from typing import Any

from earlybird.data.advice import Advice
from earlybird.data.units import format_bytes, format_seconds
from earlybird.report import advice_words, words
from earlybird.report.advice_figure import strip_figure
from earlybird.report.parts import Chapter, Step, Table

ID = "advice"
QUESTION = "What should I change?"
PIPELINE = (
    "earlybird advise pipeline --threads 8 --size 64MiB --gamma 100us/MB --profile profile.json "
    "--json > advice.json"
)
COLLECTIVE = "earlybird advise collective --op bcast --ranks 8 --profile profile.json --json > advice.json"
EXCHANGE = "Of an exchange, the slowest rank and what it receives are the place to look."
MEANS = (
    "Gains and times are predicted by the models of the profile, and their intervals hold what the launches "
    "measured leave open, with 95 %. The first is the fastest, or less work to do and hardly slower."
)
# Named differently in a table than in the file.
_COLUMNS = {"message_bytes": "message size", "source": "known from"}
# Shown by the name of the method, or of no use to who follows the advice.
_TOLD_ELSEWHERE = ("vcis", "algorithm", "segment_bytes", "form")
_BRIEF = 4  # alternatives in the terminal


def advice_chapter(given: tuple[Advice, ...], exchange: bool = False) -> Chapter:
    """Several pieces of advice stand together, the one that gains most first; without any, a hint on the
    `exchange` that was timed."""
    pieces = advice_words.by_gain(given)
    if not pieces:
        return Chapter(
            ID,
            QUESTION,
            "No advice was given to this report.",
            [EXCHANGE] if exchange else [],
            absent=[
                ("Advice on a buffer that threads fill is given by", PIPELINE),
                ("Advice on a collective operation is given by", COLLECTIVE),
            ],
        )
    strips = [strip_figure(one, f"advice-{k}") for k, one in enumerate(pieces)]
    return Chapter(
        ID,
        QUESTION,
        _sentence(pieces[0]),
        [MEANS, *_notes(pieces)],
        steps=[_step(one) for one in pieces],
        figures=[figure for figure in strips if figure is not None],
        tables=[_crossovers(one) for one in pieces if one.stretches],
        shown=[_alternatives(one) for one in pieces],
        brief=[_brief(one) for one in pieces],
        listings=[listing for one in pieces for listing in _listing(one)],
    )


def _sentence(advice: Advice) -> str:
    first, what = advice.ranked[0], words.capital(advice_words.title(advice))
    method = advice_words.name(first.method, first.extra)
    if first.method == advice.baseline:
        return f"{what}: {method} is already the best, there is nothing to gain."
    return f"{what}: with {method} it is predicted to take {format_seconds(first.time_s)}, {_gain(advice)}."


def _gain(advice: Advice) -> str:
    return advice_words.gain(advice, advice.ranked[0])


def _step(advice: Advice) -> Step:
    first = advice.ranked[0]
    method = advice_words.name(first.method, first.extra)
    return Step(
        f"{words.capital(advice_words.title(advice))}: {method}.",
        f"Predicted {advice_words.takes(first)}, {_gain(advice)}.",
        first.do,
    )


def _notes(pieces: Sequence[Advice]) -> list[str]:
    """What the advice warns of; the same of several pieces is said once."""
    said: dict[str, list[str]] = {}
    for one in pieces:
        for note in [*one.notes, *_left_out(one)]:
            said.setdefault(note, []).append(advice_words.title(one))
    if len(pieces) == 1:
        return [words.capital(note) for note in said]
    return [f"{words.capital(words.listed_briefly(titles, 2))}: {note}" for note, titles in said.items()]


def _left_out(advice: Advice) -> list[str]:
    """The sizes that the settings cannot tell the MPI of."""
    left = _config(advice).get("left_out")
    told = words.listed([str(one) for one in left]) if isinstance(left, list) else ""
    return [f"the settings leave out what this MPI cannot be told of beside the rest: {told}"] if told else []


def _alternatives(advice: Advice) -> Table:
    keys = [
        key
        for key in dict.fromkeys(key for one in advice.ranked for key in one.extra)
        if key not in _TOLD_ELSEWHERE
    ]
    rows = [
        [
            advice_words.name(one.method, one.extra),
            format_seconds(one.time_s),
            advice_words.spread(one.time_interval_s, format_seconds) if one.time_interval_s else "-",
            "-" if one.gain is None else f"{one.gain:.2f}",
            advice_words.spread(one.gain_interval, "{:.2f}".format) if one.gain_interval else "-",
            *(advice_words.extra_cell(key, one.extra.get(key)) for key in keys),
            one.do,
        ]
        for one in advice.ranked
    ]
    columns = [
        _COLUMNS.get(key, key.removesuffix("_bytes").removesuffix("_s").replace("_", " ")) for key in keys
    ]
    header = [
        "method",
        "time",
        "95 %",
        "gain",
        "95 %",
        *columns,
        "what to do",
    ]
    caption = words.capital(advice_words.title(advice)) + advice_words.gain_over(advice)
    return Table(caption, header, rows, wide=True)


def _brief(advice: Advice) -> Table:
    rows = [
        [
            advice_words.name(one.method, one.extra),
            advice_words.takes(one),
            "-" if one.gain is None else f"{one.gain:.2f}",
            advice_words.spread(one.gain_interval, "{:.2f}".format) if one.gain_interval else "-",
        ]
        for one in advice.ranked[:_BRIEF]
    ]
    left = len(advice.ranked) - _BRIEF
    more = f"; {words.counted(left, 'more alternative')} on the page" if left > 0 else ""
    return Table(words.capital(advice_words.title(advice)) + more, ["method", "time", "gain", "95 %"], rows)


def _config(advice: Advice) -> Mapping[str, Any]:
    config = advice.extra.get("config")
    return config if isinstance(config, Mapping) else {"text": config}


def _listing(advice: Advice) -> list[tuple[str, str]]:
    """The settings as a file, with how it is used; what the file holds alone where nothing tells how."""
    config = _config(advice)
    if not isinstance(config.get("text"), str) or not config["text"]:
        return []
    use = f" ({config['use']})" if config.get("use") else ""
    return [(f"The settings as a file{use}: {advice_words.title(advice)}", config["text"])]


def _crossovers(advice: Advice) -> Table:
    rows = [
        [
            format_bytes(one.from_bytes),
            format_bytes(one.to_bytes),
            advice_words.name(one.method, one.extra),
            one.do,
            advice_words.extrapolated(one.extra),
        ]
        for one in advice.stretches
    ]
    return Table(
        f"Best by size: {advice_words.title(advice)}", ["from", "to", "best method", "what to do", ""], rows
    )
