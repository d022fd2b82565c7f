"""The command `earlybird`: finds the subcommand, turns errors into one sentence and an exit status."""

import os
import signal
import sys

from earlybird.data.errors import EarlybirdError

# The command `x` is `command` in the module earlybird.cli.x_command. Modules are imported only when asked
# for, so that `--help` and small commands stay quick.
COMMANDS = {
    "doctor": "What this machine has and can run",
    "build": "Install an MPI flavour where needed and compile the native code for it",
    "measure": "Measure how MPI communicates here",
    "fit": "Fit models to measured runs",
    "pattern": "Make or convert the pattern of an exchange",
    "predict": "What an exchange will cost every rank, or a buffer sent in partitions",
    "advise": "What to change, ranked by predicted time",
    "replay": "The same exchange on real MPI, compared with the prediction",
    "gain": "The closed-form gain of pipelined communication",
    "cluster": "Several nodes on this one machine",
    "exec": "Run a command in an MPI flavour's environment, libearlybird in its ranks",
    "report": "One self-contained page from runs, profiles, predictions and comparisons",
    "demo": "The main job, end to end",
}

LOOP = """\
Earlybird shows what MPI communication costs, process by process.

  measure   ->   fit   ->   predict   ->   replay   ->   report
  (samples)   (profile)   (s per rank)   (how far off)   (one page)

  earlybird demo                                    all of it on this machine
  earlybird doctor                                  what this machine can measure
  earlybird measure pingpong contention completion -o run
  earlybird fit run -o profile.json                 models with intervals
  earlybird pattern mesh --parts 4 -o mesh.csv      an exchange to ask about
  earlybird predict mesh.csv --profile profile.json --layout 1x1x4
  earlybird replay mesh.csv --profile profile.json --layout 1x1x4
  earlybird advise pipeline --threads 8 --size 64MiB --gamma 100us/MB --profile profile.json
  earlybird measure collective -o collectives       broadcasts and reductions by each algorithm
  earlybird cluster up --nodes 4 --rate 200mbit     several nodes on this one machine

`earlybird COMMAND --help` explains each one."""


def run() -> None:
    """Entry point of the console script; shows a traceback only where EARLYBIRD_DEBUG asks for it."""
    # `kill`, a batch system's time limit and Ctrl-C all end a measurement in the same orderly method.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        status = _dispatch(sys.argv[1:])
        if status == 130:
            _complain("interrupted", 130)
    except EarlybirdError as error:
        status = _complain(str(error), error.exit_status)
    except KeyboardInterrupt:
        status = _complain("interrupted", 130)
    except BrokenPipeError:
        # The reader of our output (head, less) went away: not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except OSError as error:
        where = error.filename or "the output"
        status = _complain(
            f"cannot read or write {where}: {error.strerror}; check its place, permissions and space", 1
        )
    except Exception as error:
        status = _usage_status(error)
        if status is None:
            if os.environ.get("EARLYBIRD_DEBUG"):
                raise
            kind = type(error).__name__
            status = _complain(
                f"a fault of earlybird itself, {kind}: {error}; EARLYBIRD_DEBUG=1 shows where", 1
            )
    sys.exit(status if isinstance(status, int) else 0)


def _dispatch(words: list[str]) -> object:
    """Run the command that `words` name; `exec` starts without what parses all others, which takes 100 ms."""
    if words[:1] == ["exec"]:
        from earlybird.cli import exec_start

        request = exec_start.parse(words[1:])
        if request is not None:
            return exec_start.start(request)
    from earlybird.cli.parser import app

    return app(standalone_mode=False)


def _usage_status(error: Exception) -> int | None:
    """Exit status of click's own refusals (unknown option, missing argument); None for anything else."""
    if type(error).__name__ == "Abort":
        return _complain("interrupted", 130)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message())  # `earlybird pattern` alone: its subcommands
        return 0
    if hasattr(error, "format_message"):
        command = getattr(getattr(error, "ctx", None), "command_path", None) or "earlybird"
        text = error.format_message().rstrip(".")
        return _complain(f"{text[:1].lower()}{text[1:]}; see `{command} --help`", 2)
    return None


def _complain(sentence: str, status: int) -> int:
    print(f"earlybird: {sentence}", file=sys.stderr)
    return status
