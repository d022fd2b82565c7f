"""Commands that are printed come out of a shell as the arguments that they were made of."""

import io
import os
import subprocess

import pytest

from earlybird.data.plain_text import plain_line
from earlybird.data.shell_commands import command_text, path_argument, posix_quoted

HOSTILE = [
    "a b", "it's", 'say "hi"', "$(touch x)", "`touch x`", "$HOME", "~", "*", "a;b", "a && b", "a\nb", "a\tb",
    "\x1b[31mred\x07", "\u202egnp.exe", "name\udcff", "\x9b", "\\", "$'\\x'", "!!", "#", "=ls", "", "-rf",
    "node[1-2]", "ünï", "{a,b}", "<x>", "a|b&",
]  # fmt: skip


def through(shell, text):
    """The arguments of a command line, as a shell passes them on."""
    output = subprocess.run(
        [shell, "-c", "printf '%s\\0' " + text], stdout=subprocess.PIPE, check=True
    ).stdout
    return [os.fsdecode(part) for part in output.split(b"\0")[:-1]]


def test_a_shell_takes_a_printed_command_apart_into_its_arguments():
    text = command_text(HOSTILE)
    assert through("bash", text) == HOSTILE
    assert plain_line(text) == text and "`" not in text


@pytest.mark.parametrize(
    ("encoding", "name"), [("ascii", "café 模"), ("latin-1", "café 模"), ("ascii", "می\u200cخ")]
)
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_a_stream_cannot_encode_is_written_in_ascii(monkeypatch, encoding, name, stream):
    shown = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(f"sys.{stream}", shown)
    text = command_text([name, "a b"])
    shown.write(text)
    shown.flush()
    monkeypatch.undo()
    assert through("bash", text) == [name, "a b"]


def test_what_is_for_sh_is_quoted_without_a_dollar():
    assert through("sh", posix_quoted("it's\n\x1b")) == ["it's\n\x1b"]


@pytest.mark.parametrize("name", ["plain.json", "runs/a-b_c+d=e:f,g@h%i.j"])
def test_ordinary_names_have_no_quotes(name):
    assert path_argument(name) == name


def test_a_path_is_no_option():
    assert path_argument("-rf") == "./-rf"
    assert path_argument("- x") == "'./- x'"
