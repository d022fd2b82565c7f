"""The command `earlybird` itself: help by -h, and suggestions for misspelt commands."""

import signal

import pytest

from earlybird.cli import main
from earlybird.cli.main import COMMANDS


def test_signals_that_come_together_interrupt_once(monkeypatch):
    """`timeout` sends one to the command and one to its group."""
    monkeypatch.setattr(main, "_interrupted_s", 0.0)
    for now_s, is_raised in ((10.0, True), (10.2, False), (10.9, False), (12.0, True)):
        monkeypatch.setattr(main.time, "monotonic", lambda now_s=now_s: now_s)
        if is_raised:
            with pytest.raises(KeyboardInterrupt):
                main._interrupt(signal.SIGTERM, None)
        else:
            main._interrupt(signal.SIGTERM, None)


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


def completed(own_process, *words):
    """What the shell is offered for the last of `words`, by the protocol of typer's script for bash."""
    line = {"COMP_WORDS": " ".join(("earlybird", *words)), "COMP_CWORD": str(len(words))}
    return own_process(env={"_EARLYBIRD_COMPLETE": "complete_bash"} | line).stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("me",), {"measure"}),
        (("measure", "pi"), {"pingpong", "pipeline"}),
        (("measure", "-o", "run", "cont"), {"contention"}),
        (("measure", "pipeline", "--part"), {"--partitions"}),
        (("measure", "pingpong", "--part"), set()),
        (("measure", "--la"), {"--launcher", "--launches"}),
        (("predict", "--prof"), {"--profile"}),
        (("predict", "p"), {"pipeline"}),
    ],
)
def test_the_shell_completes_commands_suites_and_options(own_process, words, offered):
    assert set(completed(own_process, *words)) == offered


def test_every_command_is_offered(own_process):
    assert set(completed(own_process, "")) == set(COMMANDS)
    assert "--install-completion" in own_process("--help").stdout
