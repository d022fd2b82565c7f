"""The shape of comparisons of MPIs: their options, their exit status, and a report on each MPI."""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from bench.commands import say
from earlybird.data.errors import EarlybirdError, InputError
from earlybird.data.run import Sample


def make_parser(name: str, description: str | None, launches: int, of_each: str) -> argparse.ArgumentParser:
    """A parser of the options of every comparison; `of_each` says what there are `launches` of by default."""
    parser = argparse.ArgumentParser(prog=f"python -m bench {name}", description=description)
    parser.add_argument("--mpi", action="append", help="a flavour; repeat for several; default all built")
    parser.add_argument("--launches", type=int, help=f"{of_each}; default {launches}")
    parser.add_argument("-o", "--json", type=Path, help="keep every sample here (FILE.json or FILE.json.gz)")
    return parser


def add_quick(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="one short launch of each kind")


def add_from(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="read", type=Path, help="measure nothing: read what --json kept")


def run(name: str, options: argparse.Namespace, work: Callable[[], None]) -> int:
    """Do the work, and return the exit status; say the error that ends it."""
    if options.launches is not None and options.launches < 1:
        say(f"{name}: --launches is {options.launches}; give 1 or more")
        return 2
    try:
        work()
    except EarlybirdError as error:
        say(f"{name}: {error}")
        return 2 if isinstance(error, InputError) else 1
    return 0


def report_on_each(samples: Iterable[Sample], report: Callable[[str, list[Sample]], None]) -> None:
    """Report on the samples of each MPI."""
    by_mpi: dict[str, list[Sample]] = {}
    for sample in samples:
        by_mpi.setdefault(sample.config["mpi"], []).append(sample)
    for mpi, of_mpi in by_mpi.items():
        report(mpi, of_mpi)
