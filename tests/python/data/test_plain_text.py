"""Text that is shown has no controls, invisible characters or lone surrogates."""

import json
import re
import sys
import unicodedata

import pytest

from earlybird.data.plain_text import csv_cell, markdown_text, plain, plain_line

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


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم",
        "क्\u200dष",
        "👩🏽\u200d💻",
        "❤\ufe0f",
        "❤\ufe0f\u200d🔥",
        "1\ufe0f\u20e3",
        "🏳\ufe0f\u200d🌈",
    ],
)
def test_joiners_within_words_and_emojis_are_kept(text):
    assert plain(text) == plain_line(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "node\u200c1",
        "a\u200d",
        "م\u200c\u200cم",
        "م\u200c ",
        "ж\u200cж",
        "a\ufe0f",
        "❤\ufe0f\ufe0f",
        "12\ufe0f",
        "🔥\u200d",
    ],
)
def test_joiners_that_join_nothing_are_escaped(text):
    shown = plain(text)
    assert not set("\u200c\u200d\ufe0f") & set(shown.replace("❤\ufe0f", ""))
    assert json.loads(f'"{shown}"') == text


@pytest.mark.parametrize(
    "text", ["-5", "+.5", "-1e-5", "-3.", "-inf", "-1 2 3", "-3 %", "-3%", "1 -2", "node-1"]
)
def test_numbers_in_a_cell_stay_as_they_are(text):
    assert csv_cell(text) == text


@pytest.mark.parametrize(
    "text", ["-E5", "+e1", "-", "-.", "-1+1", "-1 @x", "--1", "=1", "@x", "-A1 2", " -E5"]
)
def test_a_cell_is_no_formula(text):
    assert csv_cell(text) == f"'{text}"


@pytest.mark.parametrize(
    "text", ["@name", "#12", "org/repo#12", "http://x.org", "www.x.org", "GH-12", "a@b.org"]
)
def test_markdown_mentions_and_links_nothing(text):
    shown = markdown_text(text)
    assert not re.search(r"[@#]\w|(?<!\\)://|www\.|GH-1", shown)
    assert re.sub(r"\\(.)", r"\1", shown.replace("<!-- -->", "")) == text


def test_newlines_and_tabs_are_kept_in_text_and_escaped_in_a_line():
    assert plain("a\n\tb\r\n") == "a\n\tb\\r\n"
    assert plain_line("a\n\tb\r\n") == r"a\n\tb\r\n"
