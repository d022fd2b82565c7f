"""The report for the terminal: the answers and sentences of the page, and tables of at most 100 columns."""

import re
import textwrap
from collections.abc import Iterable

from earlybird.data.plain_text import plain_line
from earlybird.present.contents import Absent, Contents, MoreChapters, contents, no_chapters
from earlybird.present.core.parts import Answer, Chapter
from earlybird.present.core.table import Table
from earlybird.present.material import Material
from earlybird.present.render.terminal import WIDE_TABLE, cut_lines

# An argument of a command as `shell_commands` quotes it.
_ARGUMENT = re.compile(r"""(?:\$'(?:\\.|[^'\\])*'|'[^']*'|"[^"]*"|[^\s'"])+""")


def render(material: Material, more: MoreChapters = no_chapters) -> str:
    """Return the report as plain text with a final newline; `more` makes further chapters."""
    report = contents(material, more)
    blocks = [_answers(report)]
    blocks += [_chapter(number, chapter) for number, chapter in enumerate(report.chapters.values(), start=1)]
    blocks += _list("Warnings", report.warnings) + _list("Not in this report", map(_missing, report.absent))
    return "\n\n".join(blocks) + "\n"


def _answers(report: Contents) -> str:
    return "\n\n".join([_heading("Answers"), *map(_answer, report.answers), _wrapped(report.trust_line)])


def _answer(answer: Answer) -> str:
    number = f": {answer.number}" * bool(answer.number) + f" ({answer.interval})" * bool(answer.interval)
    text = _wrapped(answer.what + number)
    text += "\n" + _wrapped(answer.sentence, "  ")
    return text + ("\n" + _wrapped(f"Do: {answer.do}", "  ") if answer.do else "")


def _missing(absent: Absent) -> str:
    return f"{absent.question} {absent.remark} {f'`{absent.command}`' if absent.command else ''}".rstrip()


def _list(title: str, texts: Iterable[str]) -> list[str]:
    lines = [_wrapped(f"- {text}") for text in texts]
    return ["\n".join([_heading(title), *lines])] if lines else []


def _heading(title: str) -> str:
    return f"{title}\n{'-' * len(title)}"


def _chapter(number: int, chapter: Chapter) -> str:
    blocks = [f"{_heading(f'{number}. {chapter.question}')}\n{_wrapped(chapter.sentence)}"]
    blocks += [_wrapped(line) for line in chapter.lines]
    blocks += [_table(table) for table in chapter.brief]
    return "\n\n".join(blocks)


def _table(table: Table) -> str:
    return "\n".join([*([_wrapped(table.caption)] if table.caption else []), *cut_lines(table)])


def _wrapped(text: str, indent: str = "") -> str:
    """Return text in lines; a command between backquotes that does not fit into a line stands alone, and its
    lines end in a backslash so that it can be pasted."""
    text = plain_line(text)
    filled = _filled(text, indent)
    prose_and_commands = text.split("`")
    if all(f"`{command}`" in filled for command in prose_and_commands[1::2]):
        return filled
    blocks = [
        _command(part, indent) if k % 2 else _filled(part.strip(" ,"), indent)
        for k, part in enumerate(prose_and_commands)
    ]
    return "\n".join(block for block in blocks if block.strip())


def _filled(text: str, indent: str) -> str:
    return textwrap.fill(
        text, WIDE_TABLE, break_on_hyphens=False, initial_indent=indent, subsequent_indent=indent
    )


def _command(text: str, indent: str) -> str:
    """Return the lines of a command, none of which ends within an argument."""
    arguments = _ARGUMENT.findall(text)
    if " ".join(arguments) != text:
        return f"{indent}  {text}"
    width = WIDE_TABLE - len(indent) - 9
    lines: list[str] = []
    for argument in arguments:
        if not lines or lines[-1].endswith("&&"):
            lines.append(argument)
        elif argument == "&&" or len(f"{lines[-1]} {argument}") <= width:
            lines[-1] += f" {argument}"
        else:
            lines.append(f"  {argument}")
    return textwrap.indent(" \\\n".join(lines), f"{indent}  ")
