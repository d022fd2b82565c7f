"""Runs the fuzz targets of the native parsers and of the formats: python -m tools.fuzz SECONDS [TARGET]..."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from earlybird.data.errors import InputError
from tools.configured import ROOT
from tools.fuzzing import formats, inputs, native

FOLDER = ROOT / "build" / "fuzz"


def main(arguments: Sequence[str]) -> int:
    of_native, of_formats = native.target_names(), formats.available()
    parser = argparse.ArgumentParser(
        prog="python -m tools.fuzz", description="A failing input is left in build/fuzz/found/TARGET."
    )
    parser.add_argument("seconds", type=float, help="time of each target")
    names = [*of_native, *of_formats, "native", "formats"]
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help=f"one of {', '.join(names)}; default: all"
    )
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same inputs of formats")
    parser.add_argument("--inputs", type=int, help="so many inputs of each format instead of SECONDS")
    given = parser.parse_args(arguments)
    targets = given.targets or ["native", "formats"]
    unknown = [name for name in targets if name not in names]
    if unknown:
        parser.error(f"there is no target {unknown[0]}; give one of {', '.join(names)}")
    chosen = [name for name in of_native if name in targets or "native" in targets]
    failed = bool(chosen) and _run_native(chosen, given.seconds)
    tallies = []
    chosen = [name for name in of_formats if name in targets or "formats" in targets]
    for tally in _tallies(chosen, given):
        tallies.append(tally)
        print(tally, flush=True)
        for kind, count in tally.failures.most_common():
            print(f"  {count} x {kind} (in {tally.kept.get(kind, 'no input')})", file=sys.stderr, flush=True)
    if len(tallies) > 1:
        print(inputs.total(tallies))
    return int(failed or any(tally.failures for tally in tallies))


def _tallies(names: Sequence[str], given: argparse.Namespace) -> Iterator[inputs.Tally]:
    return inputs.run_all(names, given.seconds, FOLDER / "found", given.seed, given.inputs)


def _run_native(names: Sequence[str], seconds: float) -> bool:
    """Run targets of native/fuzz; whether one failed."""
    try:
        native.build(FOLDER)
    except InputError as error:
        print(error, file=sys.stderr)
        return True
    failed = False
    for name in names:
        found: Path = FOLDER / "found" / name
        result = native.run(FOLDER, name, seconds, found)
        failed |= result.returncode != 0
        last = (result.stdout.strip() or result.stderr.strip()).splitlines()[-1:]
        print(f"{name}: {last[0] if last and result.returncode == 0 else 'failed'}", flush=True)
        if result.returncode != 0:
            print(result.stdout, result.stderr, f"(in {found})", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
