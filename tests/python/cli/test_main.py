"""The command `earlybird` itself: help by -h, and suggestions for misspelt commands."""

import pytest


@pytest.mark.parametrize("command", [(), ("measure",), ("exec",), ("advise", "pipeline")])
def test_h_is_short_for_help(earlybird, command):
    assert earlybird(*command, "-h").stdout == earlybird(*command, "--help").stdout != ""


@pytest.mark.parametrize(
    ("typed", "meant", "where"),
    [(("meassure",), "measure", "earlybird"), (("pattern", "mash"), "mesh", "earlybird pattern")],
)
def test_a_misspelt_command_names_the_one_that_is_like_it(earlybird, typed, meant, where):
    ended = earlybird(*typed, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert (
        ended.stderr
        == f"earlybird: no such command {typed[-1]!r}, did you mean {meant!r}? See `{where} --help`\n"
    )
