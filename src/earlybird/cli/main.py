"""The command `earlybird`: dispatches to the subcommand and turns errors into one sentence and an exit
status."""

import errno
import os
import signal
import sys
import time
from typing import Any

from earlybird.data.errors import FAILED_VERDICT, EarlybirdError, cause_of, is_of_the_path
from earlybird.present.render.notes import note
from earlybird.present.render.streams import discard, prepare_streams

# The command `x` is `command` in the module earlybird.cli.commands.x. Modules are imported on demand, so that
# `--help` and small commands start quickly. The first group is what most users need.
GROUPS = {
    "Start here": {
        "doctor": "Report what this machine can run and measure",
        "measure": "Measure how MPI communicates here",
        "fit": "Fit models to measured runs",
        "predict": "Predict the cost of an exchange, a buffer, a collective, or a recorded program",
        "record": "Run a program and record who sends how much to whom, and in which calls",
        "advise": "Recommend a method, an algorithm or a change, with the setting to use it",
        "compare": "Compare runs: which points are slower, and what else differs",
        "report": "Write one self-contained page from runs, profiles and other results",
    },
    "Exchanges of messages": {
        "pattern": "Create or convert the pattern of an exchange",
        "replay": "Run the exchange on real MPI and compare it with the prediction",
        "gain": "Compute the ideal speed-up of early sending",
    },
    "Programs": {
        "exec": "Run a command in an MPI's environment, with libearlybird in its ranks",
        "where": "Print who waits for whom in a program that runs: why it hangs",
    },
    "Papers": {
        "reproduce": "Measure the figures of a paper, next to the values that it printed",
    },
    "Machines over time": {
        "check": "Check whether every node and link of a job is as fast as the others",
        "baseline": "Keep what a run measured under a name, to compare later runs with",
        "history": "Date the steps and drifts of every point over many runs",
    },
    "Files": {
        "show": "Print a result file or a run folder",
        "import": "Make a run of what other benchmarks printed (OSU, IMB, ReproMPI)",
        "export": "Write messages, placements, models or results in a format of another tool",
    },
    "Installation": {
        "build": "Install an MPI flavour where needed and compile the native code for it",
        "cluster": "Run several virtual nodes on this machine",
        "demo": "Run the whole workflow on this machine",
    },
}
# What commands of earlier versions are called now.
RENAMED = {"project": "predict program"}
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}

# Their status 0 says that all is well and 1 that something is not, which they must not after a failure.
_VERDICTS = ("compare", "check")

FIRST_SCREEN = """\
Earlybird measures and predicts what MPI communication costs each process.

  earlybird doctor                                     what this machine can measure
  earlybird measure pingpong contention completion -o run
  earlybird fit run -o profile.json                    models with intervals
  earlybird predict mesh.csv --profile profile.json --layout 1x1x4
  earlybird record --events all -o rec -- mpiexec -n 4 ./app
                                                       what a program sends, and what it waits for
  earlybird advise program rec --profile profile.json  what would make it faster
  earlybird compare before after                       what became slower
  earlybird report run profile.json rec -o report.html

`earlybird --help` lists all commands, `earlybird COMMAND --help` describes each."""

_TOGETHER_S = 1.0
_interrupted_s = -_TOGETHER_S


def _interrupt(number: int, frame: Any) -> None:
    """Raise KeyboardInterrupt, but once for signals that come together.

    `timeout` and `earlybird record` send one to the process after the group had it. The second one would
    interrupt what the first began, at worst inside a `with` of subprocess, whose lock is then never released.
    """
    global _interrupted_s
    is_same = time.monotonic() - _interrupted_s < _TOGETHER_S
    if not is_same:
        _interrupted_s = time.monotonic()
        raise KeyboardInterrupt


def run() -> None:
    """Run the command line and exit with its status; print a traceback only if EARLYBIRD_DEBUG is set."""
    prepare_streams()
    # `kill`, a batch system's time limit, the end of a terminal and Ctrl-C all end a measurement in the same
    # way.
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGHUP, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a shell's background jobs ignore it
        signal.signal(signal.SIGINT, _interrupt)
    command = next(iter(sys.argv[1:]), "")
    failed = FAILED_VERDICT if command in _VERDICTS else 1
    status: Any = 0
    try:
        status = _dispatch(sys.argv[1:])
        if status == 130:
            _complain("interrupted", 130)
        sys.stdout.flush()
    except EarlybirdError as error:
        status = _complain(str(error), failed if error.exit_status == 1 else error.exit_status)
    except KeyboardInterrupt:
        status = _complain("interrupted", 130)
    except BrokenPipeError:
        # The reader of our output (head, less) has exited: this is not an error.
        discard(sys.stdout)
        status = status or (FAILED_VERDICT if command in _VERDICTS else 0)
    except OSError as error:
        if error.filename is None:
            discard(sys.stdout)
        path = error.filename or "the output"
        remedy = "redirect it" if error.errno == errno.EBADF else "check the path, permissions and free space"
        sentence = f"cannot read or write {path}: {cause_of(error)}; {remedy}"
        status = _complain(sentence, 2 if error.filename and is_of_the_path(error) else failed)
    except MemoryError:
        status = _complain("there is not enough memory; give smaller input, or free some memory", failed)
    except Exception as error:
        status = _usage_status(error)
        if status is None:
            if os.environ.get("EARLYBIRD_DEBUG"):
                raise
            kind = type(error).__name__
            status = _complain(
                f"internal error, {kind}: {error}; set EARLYBIRD_DEBUG=1 for a traceback", failed
            )
    try:
        sys.stdout.flush()
    except OSError:  # after a failure, whose status counts
        discard(sys.stdout)
    sys.exit(status if isinstance(status, int) else 0)


def _dispatch(arguments: list[str]) -> object:
    """Run the command in `arguments`; `exec` bypasses the general parser, whose import takes 100 ms."""
    if arguments[:1] == ["exec"]:
        from earlybird.cli import exec_options
        from earlybird.launch import execution

        request = exec_options.parse(arguments[1:])
        if request is not None:
            return execution.start(request, note)
    if arguments and (renamed := RENAMED.get(arguments[0])):
        help_of = f"`earlybird {renamed} --help`"
        return _complain(f"`earlybird {arguments[0]}` is now `earlybird {renamed}`; see {help_of}", 2)
    from earlybird.cli.parser import app
    from earlybird.data.files import pipes_read_again

    try:
        with pipes_read_again():
            return app(standalone_mode=False, prog_name="earlybird", help_option_names=["-h", "--help"])
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # for which the library exits with 1
            raise ended.__context__ from None
        raise


def _usage_status(error: Any) -> int | None:
    """Return the exit status of click's usage errors (unknown option, missing argument); None for any other
    error."""
    if type(error).__name__ == "Abort":
        return _complain("interrupted", 130)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message())  # `earlybird pattern` without a subcommand: list them
        return 0
    if getattr(error, "option_name", "") == "--reproduce":
        return _complain("--reproduce PAPER is now a command: `earlybird reproduce PAPER -o DIR`", 2)
    if hasattr(error, "format_message"):
        command = getattr(getattr(error, "ctx", None), "command_path", None) or "earlybird"
        text = error.format_message().rstrip(".")
        text = f"{text[:1].lower()}{text[1:]}".replace(". Did you mean", ", did you mean")
        if hasattr(error, "option_name") and (nearest := getattr(error, "possibilities", None)):
            text = f"no such option: {error.option_name}, did you mean {nearest[0]}?"
        see = " See" if text.endswith("?") else "; see"
        return _complain(f"{text}{see} `{command} --help`", 2)
    return None


def _complain(sentence: str, status: int) -> int:
    note(f"earlybird: {sentence}")
    return status
