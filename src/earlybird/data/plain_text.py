"""Makes text from files and other programs safe to show: controls and invisible characters become escapes.

Names of hosts, functions and files, versions and titles may contain terminal escapes, bidirectional
overrides, control characters, which XML does not have, or bytes that are no text (lone surrogates). Whatever
writes text for people or for other programs uses these functions; values in JSON stay as they are.
"""

import re
from typing import Any

# The general categories Cc, Cf, Cs, Zl and Zp of Unicode, what else Unicode calls default ignorable, and
# noncharacters.
_RANGES = (
    "\x00-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
) + "".join(f"{chr(end - 1)}{chr(end)}" for end in range(0x1FFFF, 0x110000, 0x10000))  # fmt: skip
# What belongs to the writing of living languages, where it joins visible characters: one joiner between
# letters of a script that has such (Arabic, Indic and others) or parts of an emoji, and the emoji form of a
# symbol.
_SYMBOL = "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_JOINED = (
    "\u0620-\u06dc\u06de-\u070e\u0710-\u088f\u0892-\u08e1\u08e3-\u109f\u1780-\u17b3\u17b6-\u180a\u1820-\u18af"
)
_JOINING = (
    f"(?<=[{_JOINED}])[\u200c\u200d](?=[{_JOINED}])"
    f"|(?:(?<=[{_SYMBOL}])|(?<=[{_SYMBOL}]\ufe0f))\u200d(?=[{_SYMBOL}])"
    f"|(?<=[{_SYMBOL}])\ufe0f(?!\ufe0f)|(?<=[0-9#*])\ufe0f(?=\u20e3)"
)
_HIDDEN_IN_LINE = re.compile(f"(?!{_JOINING})[{_RANGES}]")
_HIDDEN = re.compile(f"(?![\n\t]|{_JOINING})[{_RANGES}]")
# All escapes below U+10000 are those of JSON.
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def plain(text: str) -> str:
    r"""Return `text` with control and invisible characters as escapes (`\u001b`), except newlines and
    tabs."""
    return text if _is_printable_ascii(text) else _HIDDEN.sub(_escape, text)


def plain_line(text: str) -> str:
    r"""Return `text` as a part of one line: `plain` with newlines and tabs as escapes (`\n`), too."""
    return text if _is_printable_ascii(text) else _HIDDEN_IN_LINE.sub(_escape, text)


def _is_printable_ascii(text: str) -> bool:
    # str.isprintable() alone also accepts combining and filling characters that are invisible.
    return text.isascii() and text.isprintable()


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return _NAMED.get(match[0]) or (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


# What makes a formula of a cell in spreadsheets, in their Japanese editions also the wide forms.
_FORMULA = tuple("=+-@＝＋－＠")
_NUMBER = r"[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|inf|nan)"
# Also several, and percentages, which are no formulas either.
_NUMBERS = re.compile(rf"{_NUMBER}( ?%)?( {_NUMBER})*")


def csv_cell(value: Any) -> Any:
    """Return the cell of a CSV for `value`: for a list its items, and never a text that a spreadsheet would
    run as a formula. Such a text is preceded by an apostrophe; numbers stay numbers."""
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    if not isinstance(value, str):
        return value
    text = plain(value)
    begin = text.lstrip()
    is_formula = begin.startswith(_FORMULA) and not _NUMBERS.fullmatch(begin)
    return f"'{text}" if is_formula else text


# A tag or a link begins with `<`, an entity, which would become the character again, with `&`; an underscore
# within a word is no emphasis. Addresses become links without markup.
_MARKUP = re.compile(
    r"[\\`*\[\]|~$]|<(?=[^\s=])|&(?=[#\w])|(?<![^\W_])_|_(?![^\W_])"
    r"|(?<=http):(?=//)|(?<=https):(?=//)|(?<=ftp):(?=//)|(?<=www)\.",
    re.IGNORECASE,
)
# GitHub looks for people and issues in the text that escapes have become; an empty comment takes it apart.
_MENTION = re.compile(r"@(?=\w)|#(?=[0-9])|(?<=\bGH)-(?=[0-9])", re.IGNORECASE)


def markdown_text(text: str) -> str:
    """Return `text` as a part of one line of Markdown that is displayed as it is."""
    return _MENTION.sub(r"\g<0><!-- -->", _MARKUP.sub(r"\\\g<0>", plain_line(text)))
