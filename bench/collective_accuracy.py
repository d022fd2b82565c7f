"""Broadcast and reduce over 2 to 8 virtual nodes: how far off forms are where they were not fitted.

Our algorithms and the MPI's own, forced, one rank per node, at a rate and at sizes where the link and not the
cores is the limit: of smaller messages two cores that eight ranks share tell of the scheduler. Each form is
judged on process counts left out in turn, and fitted to 2 to 4 processes on 5 to 8; of the smallest size too,
next to form 2 of Insaghi (paper), which has no sizes: ours fitted to all sizes, as predictions use it.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.commands import built_mpis, earlybird, say, virtual_cluster
from earlybird.fit.collective_comparison import ALL_SIZES
from earlybird.present.render.terminal import print_rows

NODES, RATE = 8, "50mbit"
ALGORITHMS = (
    "own-linear", "own-pipeline:8KiB", "own-binomial", "linear", "pipeline:8KiB", "binomial",
)  # fmt: skip
SIZES = "1KiB,4KiB,16KiB,64KiB"
LAUNCHES, QUICK_LAUNCHES = 3, 1
ASKED_HELD_OUT, ASKED_EXTRAPOLATION = 0.15, 0.25


def main(label: Sequence[str] = ()) -> int:
    """Measure, or read runs, fit, and print every form's errors next to those of Insaghi (paper)."""
    parser = argparse.ArgumentParser(prog="python -m bench collective-accuracy", description=__doc__)
    parser.add_argument("--mpi", action="append", help="a flavour; repeat for several; default all built")
    parser.add_argument("--quick", action="store_true", help="one launch")
    parser.add_argument("--keep", type=Path, help="keep the runs in this folder, one for each MPI")
    parser.add_argument("--from", dest="read", type=Path, nargs="+", help="measure nothing: read these runs")
    options = parser.parse_args(list(label))
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        runs = options.read or measure_runs(options.mpi or built_mpis(), folder, options.quick)
        for run in runs:
            profile = Path(scratch) / f"{run.name}.json"
            earlybird("fit", run, "-o", profile)
            _report(run.name, json.loads(profile.read_text())["forms"])
    return 0


def measure_runs(mpis: Sequence[str], folder: Path, quick: bool) -> list[Path]:
    """A run for each MPI, in a folder of its name."""
    launches = QUICK_LAUNCHES if quick else LAUNCHES
    runs = []
    with virtual_cluster(NODES, RATE) as name:
        for mpi in mpis:
            say(f"{mpi}: measuring 2 to {NODES} nodes at {RATE}")
            earlybird(
                "measure", "collective", "--op", "bcast,reduce", "--algorithm", ",".join(ALGORITHMS),
                "--ranks", f"2..{NODES}", "--map-by", "node", "--sizes", SIZES, "--mpi", mpi,
                "--launcher", f"cluster:{name}", "--launches", launches,
                "--budget", f"{launches}min", "--quiet", "-o", folder / mpi,
            )  # fmt: skip
            runs.append(folder / mpi)
    return runs


def _report(mpi: str, forms: Sequence[dict[str, Any]]) -> None:
    judged = [form for form in forms if form["what"].get("algorithm") not in (None, "default")]
    print(f"\n{mpi}: median relative errors, of our form and of Insaghi (paper)")
    print_rows(
        ["", "algorithm", "process count left out", "", "form 3", "5 to 8 from 2 to 4", "", "form 3",
         "the same of 1 KiB", "form 2", ""],
        [_row(form) for form in judged],
    )  # fmt: skip
    for key, label, asked in (
        ("held_out_error", "process counts left out", ASKED_HELD_OUT),
        ("extrapolation_error", "5 to 8 processes from 2 to 4", ASKED_EXTRAPOLATION),
    ):
        found = [form[key] for form in judged if form.get(key) is not None]
        if found:
            middle = float(np.median(found))
            print(
                f"{label}: median {_per_cent(middle)}, worst {_per_cent(max(found))} of {len(found)} forms "
                f"(asked: at most {_per_cent(asked)}, {_verdict(middle, asked)})"
            )
    pairs = [pair for form in judged if None not in (pair := _smallest_size(form))]
    if pairs:
        ours, theirs = np.array(pairs).T
        print(
            f"of 1 KiB alone: median {_per_cent(float(np.median(ours)))}, form 2 "
            f"{_per_cent(float(np.median(theirs)))}; ours errs less for {int((ours < theirs).sum())} of "
            f"{len(pairs)} forms"
        )


def _row(form: dict[str, Any]) -> list[str]:
    def of_grid(key: str) -> float | None:
        return _error(form, key, lambda one: one["form"] == "insaghi-3" and one["points"] == ALL_SIZES)

    held_out, beyond = form.get("held_out_error"), form.get("extrapolation_error")
    ours, theirs = _smallest_size(form)
    return [
        form["what"]["operation"], form["what"]["algorithm"],
        _per_cent(held_out), _verdict(held_out, ASKED_HELD_OUT), _per_cent(of_grid("held_out_error")),
        _per_cent(beyond), _verdict(beyond, ASKED_EXTRAPOLATION), _per_cent(of_grid("extrapolation_error")),
        _per_cent(ours), _per_cent(theirs), "" if theirs is None else _verdict(ours, theirs),
    ]  # fmt: skip


def _smallest_size(form: dict[str, Any]) -> tuple[float | None, float | None]:
    """Errors beyond half of the processes at the smallest size: of our form, fitted to all sizes, and of the
    report's form 2."""
    key = "extrapolation_error"
    return (
        _error(form, key, lambda one: one.get("fitted_to") == ALL_SIZES),
        _error(form, key, lambda one: one["form"] == "insaghi-2"),
    )


def _error(form: dict[str, Any], key: str, chosen: Callable[[dict[str, Any]], bool]) -> float | None:
    return next((one.get(key) for one in form.get("alternatives", ()) if chosen(one)), None)


def _per_cent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def _verdict(value: float | None, asked: float) -> str:
    return "" if value is None else "met" if value <= asked else "missed"
