"""Text that is shown has no controls, invisible characters or lone surrogates."""

import json
import sys
import unicodedata

import pytest

from earlybird.data.plain_text import plain, plain_line

HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Default ignorable characters of other categories: combining grapheme joiner, fillers, variation selectors.
IGNORABLE = "\u034f\u115f\u1160\u17b4\u3164\uffa0\ufe0f\U000e0100"


@pytest.mark.parametrize(
    "character", ["\x1b", "\x07", "\r", "\x7f", "\x9b", "\u202e", "\u2066", "\u200b", "\udcff"]
)
def test_controls_and_invisible_characters_become_escapes_of_json(character):
    text = plain(f"a{character}b")
    assert text.isascii() and text.isprintable()
    assert json.loads(f'"{text}"') == f"a{character}b"


def test_every_hidden_character_of_unicode_is_escaped():
    hidden = [
        character
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(character := chr(code)) in HIDDEN_CATEGORIES
    ]
    text = plain_line("".join(hidden) + IGNORABLE)
    assert text.isascii() and text.isprintable()


def test_noncharacters_which_xml_does_not_have_are_escaped():
    assert plain("\ufffe\uffff\U0001ffff") == r"\ufffe\uffff\U0001ffff"


def test_text_of_any_language_is_unchanged():
    text = "node-1 ~/häuser/模型 Ελλάδα עברית हिन्दी 5 µs | `x` <b> \\n 🐦"
    assert plain(text) == plain_line(text) == text


def test_newlines_and_tabs_are_kept_in_text_and_escaped_in_a_line():
    assert plain("a\n\tb\r\n") == "a\n\tb\\r\n"
    assert plain_line("a\n\tb\r\n") == r"a\n\tb\r\n"
