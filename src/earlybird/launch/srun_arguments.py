"""Reads --srun, a user's arguments for srun, and refuses what Earlybird sets itself."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from earlybird.data.errors import InputError

# Options of srun that a launch sets, or that would make it another one, with why they are refused.
_RANKS = "the layout says how many ranks run on each node"
_NODES = "it would choose other nodes than the layout has; give it to salloc or sbatch"
_CORES = "each rank binds itself to the cores that the layout and --threads give it"
_STEP = "Earlybird needs the command, the output and the end of the step as it starts it"
_REFUSED = {
    **dict.fromkeys(
        (
            "ntasks", "nodes", "ntasks-per-node", "ntasks-per-socket", "ntasks-per-core", "ntasks-per-gpu",
            "distribution", "overcommit", "spread-job", "use-min-nodes",
        ),
        _RANKS,
    ),
    **dict.fromkeys(("nodelist", "nodefile", "exclude", "relative"), _NODES),
    **dict.fromkeys(
        (
            "cpu-bind", "cpus-per-task", "cpus-per-gpu", "threads-per-core", "hint", "extra-node-info",
            "exact", "exclusive", "overlap", "tres-per-task",
        ),
        _CORES,
    ),
    **dict.fromkeys(
        (
            "export", "export-file", "kill-on-bad-exit", "input", "output", "error", "label", "chdir",
            "multi-prog", "test-only", "pty", "interactive", "no-allocate", "jobid", "help", "usage",
            "version", "time", "time-min", "wait", "signal", "deadline", "verbose", "slurmd-debug",
        ),
        _STEP,
    ),
    "pack-group": "its name is --het-group since Slurm 20.02",
}  # fmt: skip
_SHORT = {
    "n": "ntasks", "N": "nodes", "m": "distribution", "O": "overcommit", "w": "nodelist", "F": "nodefile",
    "x": "exclude", "r": "relative", "c": "cpus-per-task", "B": "extra-node-info", "K": "kill-on-bad-exit",
    "i": "input", "o": "output", "e": "error", "l": "label", "D": "chdir", "Z": "no-allocate", "h": "help",
    "V": "version", "t": "time", "W": "wait", "v": "verbose",
}  # fmt: skip
# The other short options: with a value, without one, and with one that can only follow at once.
_WITH_VALUE, _WITHOUT, _ATTACHED = frozenset("ACGJLMSTbdpq"), frozenset("EHQRsuX"), frozenset("Ik")
_MPI, _COMPONENT = "mpi", "het-group"


@dataclass(frozen=True)
class SrunArguments:
    """The arguments of srun that a user has given.

    Attributes
    ----------
    text : the text as given.
    arguments : arguments for each srun, without --mpi.
    mpi : the plugin of --mpi, None if it is to be chosen.
    component : the component of a heterogeneous job on which the ranks run.
    """

    text: str = ""
    arguments: tuple[str, ...] = ()
    mpi: str | None = None
    component: int = 0


NO_ARGUMENTS = SrunArguments()


def parse_srun_arguments(text: str | None) -> SrunArguments:
    """Return the arguments in `text`, which are quoted as for a shell.

    Raises InputError for an option that conflicts with the launch, also if it is abbreviated as getopt
    allows, and for an argument that srun would take for the program.
    """
    try:
        words = shlex.split(text or "")
    except ValueError as error:
        raise InputError(f"--srun is {text!r}, which ends within quotes ({error}); close them") from None
    arguments, mpi, component = [], None, 0
    for option, name, value in _options(words):
        if name == _MPI:
            mpi = _plugin(value)
            continue
        if name == _COMPONENT:
            component = _component(value)
        arguments += option
    return SrunArguments(shlex.join(words), tuple(arguments), mpi, component)


def _options(words: list[str]) -> Iterator[tuple[list[str], str, str]]:
    """Yield each option: its arguments, its long name, empty for a short one, and its value."""
    rest = iter(words)
    for word in rest:
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word[2:].partition("=")
            _refuse_long(name)
            if name in (_MPI, _COMPONENT) and not equals:
                raise InputError(f"--srun has --{name} without a value; give --{name}=VALUE")
            yield [word], name, value
        elif word.startswith("-") and len(word) > 1 and word != "--":
            takes_next = _takes_next(word)
            value = next(rest, None) if takes_next else ""
            if value is None:
                raise InputError(f"--srun ends with {word}, which needs a value")
            yield [word, *([value] if takes_next else [])], "", value
        else:
            raise InputError(
                f"--srun has {word!r}, which srun would take for the program; give options alone, those with "
                "two dashes as --name=value"
            )


def _refuse_long(name: str) -> None:
    """Raise InputError for an option that is refused; getopt accepts a prefix of a name as the name."""
    meant = [full for full in _REFUSED if full == name] or [
        full for full in _REFUSED if full.startswith(name)
    ]
    if meant:
        raise InputError(f"--srun has --{name}, but {_REFUSED[meant[0]]}; omit it")
    short = next((full for full in (_MPI, _COMPONENT) if full != name and full.startswith(name)), None)
    if short:
        raise InputError(f"--srun has --{name}; write --{short}=VALUE in full")


def _takes_next(word: str) -> bool:
    """Return whether the argument after `word`, which may combine several short options, is the value of the
    last one."""
    for at, letter in enumerate(word[1:], start=2):
        if letter in _SHORT:
            raise InputError(f"--srun has -{letter}, but {_REFUSED[_SHORT[letter]]}; omit it")
        if letter in _WITH_VALUE:
            return at == len(word)
        if letter in _ATTACHED:
            return False
        if letter not in _WITHOUT:
            raise InputError(f"--srun has {word}, but srun has no option -{letter}; see `srun --help`")
    return False


def _plugin(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_/]+", value) or value == "list":
        raise InputError(f"--srun has --mpi={value}; give a plugin that `srun --mpi=list` prints")
    return value


def _component(value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", value):
        raise InputError(
            f"--srun has --het-group={value}, but a launch runs on one component of a heterogeneous job; "
            "give its number, such as --het-group=1"
        )
    return int(value)
