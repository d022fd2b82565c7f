"""The command `earlybird` itself: help by -h, and suggestions for misspelt commands."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

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


WAITING = """
import time
from earlybird.cli import main

def wait(arguments):
    try:
        print("waits", flush=True)
        time.sleep(60)
    finally:
        time.sleep(0.3)  # what ends a job takes time, in which the second signal comes
        print("ended in order", flush=True)

main._dispatch = wait
main.run()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_command_that_gets_a_signal_twice_ends_in_order(number):
    with subprocess.Popen(
        [sys.executable, "-c", WAITING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "waits\n"
        for _ in range(2):
            process.send_signal(number)
            time.sleep(0.1)
        printed, said = process.communicate(timeout=60)
    assert (process.returncode, printed, said) == (130, "ended in order\n", "earlybird: interrupted\n")


def test_the_end_of_a_terminal_that_nohup_has_ignored_interrupts_nothing():
    ignoring = f"import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n{WAITING}".replace("60", "0.5")
    with subprocess.Popen([sys.executable, "-c", ignoring], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGHUP)
        printed, _ = process.communicate(timeout=60)
    assert (process.returncode, printed) == (0, "ended in order\n")


TO_A_CLOSED_PIPE = """
import sys
from earlybird.cli import main
from earlybird.data.errors import WorkError

def fail(arguments):
    sys.stdin.read()  # until the reader of the output is gone
    print("a row")
    if arguments[-1] == "raised":
        raise WorkError("the work failed")
    return int(arguments[-1])

main._dispatch = fail
main.run()
"""


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("measure", "0"), 0, ""),
        (("measure", "1"), 1, ""),
        (("measure", "130"), 130, "earlybird: interrupted\n"),
        (("measure", "raised"), 1, "earlybird: the work failed\n"),
        (("check", "0"), 3, ""),
        (("check", "1"), 1, ""),
        (("check", "raised"), 3, "earlybird: the work failed\n"),
        (("compare", "0"), 3, ""),
        (("compare", "1"), 1, ""),
    ],
)
def test_a_reader_that_has_ended_leaves_the_status_of_a_failure(arguments, status, said):
    with subprocess.Popen(
        [sys.executable, "-c", TO_A_CLOSED_PIPE, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": ""},
    ) as process:  # fmt: skip
        assert process.stdin and process.stdout and process.stderr
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == said
    assert process.returncode == status


CHECK_ENDS = """
import sys
from earlybird.cli import main
from earlybird.data import files

def end(arguments):
    if arguments[-1] == "-o":
        files.write_text("/dev/full", "x")
    print("a row")
    return 1

main._dispatch = end
main.run()
"""


@pytest.mark.parametrize("arguments", [("check",), ("check", "-o"), ("compare",), ("compare", "-o")])
def test_a_result_that_cannot_be_written_is_no_verdict(arguments):
    with open("/dev/full", "w") as disk:
        ended = subprocess.run(
            [sys.executable, "-c", CHECK_ENDS, *arguments], stdout=disk, stderr=subprocess.PIPE, text=True
        )
    assert ended.returncode == 3 and "no space left on device" in ended.stderr


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


@pytest.mark.parametrize(
    ("typed", "meant", "where"),
    [
        (("measure", "msgrate", "--buffer", "reuse"), "--buffers", "measure msgrate"),
        (("measure", "--buffer", "reuse", "msgrate"), "--buffers", "measure msgrate"),
        (("measure", "pingpong", "--launch", "5"), "--launches", "measure pingpong"),
        (("advise", "layout", "p.csv", "--layuot", "1x1x2"), "--layout", "advise layout"),
    ],
)
def test_a_misspelt_option_names_the_one_that_is_like_it(earlybird, typed, meant, where):
    ended = earlybird(*typed, check=False)
    wrong = next(argument for argument in typed if argument.startswith("--"))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert (
        ended.stderr
        == f"earlybird: no such option: {wrong}, did you mean {meant}? See `earlybird {where} --help`\n"
    )


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (("pingpng",), "there is no suite 'pingpng', did you mean pingpong? The suites are pingpong, "),
        (("pingpong", "--quick", "contenton"), "no suite 'contenton', did you mean contention? The suites"),
        (("bandwidth",), "there is no suite 'bandwidth'; the suites are pingpong, "),
        (("pingpong", "--launcher", "slrm"), "--launcher is 'slrm', did you mean srun? Give local, srun, "),
        (("pingpong", "--launcher", "slurm"), "--launcher is 'slurm', did you mean srun? Give local, "),
        (("pingpong", "--launcher", "clster:c"), "--launcher is 'clster:c', did you mean cluster? Give "),
        (("pingpong", "--launcher", "rsh"), "--launcher is 'rsh'; give local, srun, "),
    ],
)
def test_a_misspelt_suite_or_launcher_names_the_one_that_is_like_it(earlybird, refused, typed, sentence):
    refused(earlybird("measure", *typed, check=False), sentence)


def completed(own_process, *arguments):
    """What the shell is offered for the last of `arguments`, by the protocol of typer's script for bash."""
    line = {"COMP_WORDS": " ".join(("earlybird", *arguments)), "COMP_CWORD": str(len(arguments))}
    return own_process(env={"_EARLYBIRD_COMPLETE": "complete_bash"} | line).stdout.split()


@pytest.mark.parametrize(
    ("arguments", "offered"),
    [
        (("me",), {"measure"}),
        (("measure", "pi"), {"pingpong", "pipeline"}),
        (("measure", "-o", "run", "cont"), {"contention"}),
        (("measure", "pipeline", "--part"), {"--partitions"}),
        (("measure", "pingpong", "--part"), set()),
        (("measure", "--la"), {"--launcher", "--launches"}),
        (("predict", "--prof"), {"--profile"}),
        (("predict", "p"), {"pipeline", "program"}),
    ],
)
def test_the_shell_completes_commands_suites_and_options(own_process, arguments, offered):
    assert set(completed(own_process, *arguments)) == offered


def test_the_shell_completes_baselines(own_process, tmp_path):
    for name in ("baselines/monday", "baselines/tuesday", "other/mine"):
        path = tmp_path / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    assert completed(own_process, "compare", "--baseline", "m") == ["monday"]
    assert completed(own_process, "compare", "--folder", "other", "--baseline", "m") == ["mine"]


def test_every_command_is_offered(own_process):
    assert set(completed(own_process, "")) == set(COMMANDS)
    assert "--install-completion" in own_process("--help").stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("record", "--events", "many"), "--events is 'many'; give how many to keep"),
        (("record", "--events", "-1"), "--events is '-1'; give how many to keep"),
        (("predict", "exchange", "p.csv", "--sockets", "0"), "'--sockets': 0 is not 1 or more;"),
        (("advise", "partition", "--imbalance", "x"), "'--imbalance': 'x' is not a number;"),
        (("advise", "partition", "--imbalance", "5"), "'--imbalance': 5.0 is not from 0.001 to 1;"),
        (
            ("advise", "partition", "--layout", "1x1x2", "--imbalance", "nan"),
            "'--imbalance': nan is not from 0.001 to 1;",
        ),
        (("compare", "a", "b", "--format", "xml"), "'--format': 'xml' is not one of "),
    ],
)
def test_wrong_values_of_options_are_refused_in_plain_sentences(in_process, refused, arguments, sentence):
    refused(in_process(*arguments, check=False), sentence)


@pytest.mark.parametrize(
    "arguments",
    [
        ("cluster", "up", "--nodes", "٣"),
        ("cluster", "up", "--nodes", "1_0"),
        ("gain", "--threads", "４"),
        ("gain", "--threads", "4", "--epsilon", "٠.٠٤"),
        ("measure", "pingpong", "--sizes", "٨"),
        ("measure", "pingpong", "--budget", "٣s"),
        ("measure", "pingpong", "--levels", "inter_node", "--hosts", "a:٢,b"),
        ("measure", "collective", "--skew", "1_0"),
        ("pattern", "halo", "--grid", "٤x4x4", "-o", "halo.csv"),
        ("fit", "times.csv", "-o", "profile.json"),
    ],
    ids=" ".join,
)
def test_numbers_have_digits_of_ascii_alone(in_process, refused, tmp_path, arguments):
    """int(), float() and \\d also take those of other scripts, and the first two underscores."""
    (tmp_path / "times.csv").write_text("level,placement,pairs,bytes,time_s\nintra_socket,close,1,٨,1e-6\n")
    given = next(word for word in (*arguments, "٨") if not word.isascii() or "_0" in word)
    refused(in_process(*arguments, check=False), given)


def test_no_pattern_takes_digits_of_other_scripts():
    package = Path(main.__file__).parents[1]
    assert [path.name for path in package.rglob("*.py") if "\\d" in path.read_text()] == []


INTERRUPTED_WHILE_IMPORTING = """
import sys

class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from earlybird.__main__ import run
run()
"""


@pytest.mark.parametrize("module", ["earlybird.cli.main", "earlybird.data.errors", "earlybird.cli.parser"])
def test_an_interrupt_while_modules_are_imported_is_one_line(module):
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_IMPORTING, module], capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "earlybird: interrupted\n")
