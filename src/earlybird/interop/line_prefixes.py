"""Free the lines of an output from what launchers, batch systems and logs write before each of them."""

import re
from collections.abc import Sequence

_CLOCK = r"[0-9]{1,2}:[0-9][0-9]:[0-9][0-9](?:[.,][0-9]+)?"
_DATE = r"[0-9]{4}[-/][0-9][0-9][-/][0-9][0-9]"
_ZONE = r"(?: ?(?:Z|UTC|[+-][0-9][0-9]:?[0-9][0-9]))?"
# Each is removed only if every line begins with the like; what follows is at most a separator, so that the
# blanks of the benchmark stay.
_PREFIXES = tuple(
    re.compile(pattern)
    for pattern in (
        r"[^\S\n]*\[[^\]\s]*[0-9]+ ?, ?[0-9]+\](?:\[[^\]\n]*\])?<std(?:out|err)>:? ?",  # mpirun --tag-output
        # mpirun --timestamp-output
        r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] (?:[0-9]{2}:){2}[0-9]{2} [0-9]{4} ?<std(?:out|err)>:? ?",
        r"<std(?:out|err)(?: rank=\"[0-9]+\")?>:? ?",
        r"[^\S\n]*\[?[0-9]+\]?(?:: ?|\t)",  # srun -l, mpiexec -l; numbers of lines
        r"[^\S\n]*\[[0-9]+\] ?",  # mpiexec -prepend-rank
        rf"[^\S\n]*\[?{_DATE}[T ]{_CLOCK}{_ZONE}\]?(?::| -)?[^\S\n]?",  # time stamps of logs
        rf"[^\S\n]*\[?{_CLOCK}\]?(?::| -)?[^\S\n]?",
        r">[^\S\n]?",  # a quotation in Markdown
        r"[^\S\n]+(?=\S)",  # code in Markdown
    )
)
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_INNERMOST = 6  # prefixes within each other, such as a time before a rank
_MAX_SHOWN = 60


def bare(text: str) -> str:
    """Remove colours of a terminal, and the prefix with which all lines begin and which no benchmark prints;
    remove nothing if a line differs."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    for _ in range(_INNERMOST):
        lines = text.split("\n")
        candidates = (*_PREFIXES, *_before_first_remark(lines))
        pattern = next((one for one in candidates if _is_before_all(one, lines)), None)
        if pattern is None:
            break
        text = "\n".join(_without(pattern, line) for line in lines)
    return text


def _before_first_remark(lines: Sequence[str]) -> list[re.Pattern[str]]:
    """Return the prefix of the first line with a remark, whatever it is: no remark of a benchmark has a
    prefix."""
    first = next((line for line in lines if "#" in line), "#")
    prefix = first[: first.index("#")]
    return [re.compile(re.escape(prefix))] if prefix.strip() else []


def _is_before_all(pattern: re.Pattern[str], lines: Sequence[str]) -> bool:
    """Return whether every line has the prefix; an editor may have removed blanks at its end."""
    filled = [line for line in lines if line.strip()]
    return len(filled) > 1 and all(pattern.match(line) or pattern.fullmatch(f"{line} ") for line in filled)


def _without(pattern: re.Pattern[str], line: str) -> str:
    found = pattern.match(line)
    return line[found.end() :] if found else ""


def prefix_of(title: re.Pattern[str], text: str) -> str:
    """Return the text before the first title that is not at the beginning of its line; "" if there is none.

    `title` matches a title at the beginning of a line.
    """
    for line in text.split("\n"):
        for start in (at for at, character in enumerate(line) if at and character == "#"):
            if title.match(line[start:]):
                return line[:start][:_MAX_SHOWN]
    return ""
