"""`earlybird check`: whether every node and link of a job is as fast as the others."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from earlybird.cli.options.command import make_command
from earlybird.cli.options.shared import (
    MinEffectOption,
    MpiOption,
    PlaceOptions,
    PrintScriptOption,
    QuietOption,
)
from earlybird.cli.options.values import SIZE, OneOf, above_zero, as_written
from earlybird.data import files
from earlybird.data.errors import FAILED_VERDICT, InputError, WorkError, WriteError
from earlybird.data.shell_commands import quoted
from earlybird.present.render.data import print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line

if TYPE_CHECKING:
    from earlybird.check.expectations import Expected
    from earlybird.check.plan import CheckPlan
    from earlybird.data.check import Check
    from earlybird.measure.planned_check import PlannedCheck


CheckFormat = Annotated[
    str,
    typer.Option("--format", help="How to print the result on stdout."),
    OneOf("table", "csv", "json", "junit"),
]


def check(
    context: typer.Context,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Folder to create: ok.txt, bad.txt, check.json and the samples of the run."
        ),
    ] = None,
    mpi: MpiOption = None,
    place: PlaceOptions,
    budget: Annotated[
        float,
        typer.Option(help="Planned time of both measurements; messages are as large as it allows."),
        above_zero("60s"),
    ] = as_written("120s"),
    size: Annotated[
        int | None,
        typer.Option(help="Size of messages between two nodes.  [default: 16KiB to 1MiB, as time allows]"),
        SIZE,
    ] = None,
    expect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHECK|MEASURE=VALUE",
            help="Also find what is slower than this on all nodes: an earlier check (check.json, its folder "
            "or its name in baselines/), or bandwidth=11GB/s, latency=2us, computation, incast, outcast.",
        ),
    ] = None,
    min_effect: MinEffectOption = as_written("10%"),
    stall_limit: Annotated[
        float, typer.Option(help="End the check if it makes no progress for this long."), above_zero("60s")
    ] = as_written("30s"),
    plan: Annotated[bool, typer.Option("--plan", help="Print what would be measured and how long.")] = False,
    print_script: PrintScriptOption = None,
    quiet: QuietOption = False,
    format: CheckFormat = "table",
) -> int:
    """Check whether every node and link of this job is as fast as the others.

    One MPI job with one rank per node measures every pair of nodes (latency, bandwidth in each direction and
    both), each node against all others, the cores, the clock and other differences between nodes. Values are
    compared with the median of comparable nodes; suspicious values are measured again before they are called
    bad.

    If the nodes cannot complete it together, pairs of them are launched apart from the others until those at
    fault are named, and the others are checked.

    Exit status: 0 if all are alike, 1 if nodes are to be left out (ok.txt has the others), 2 for wrong input,
    3 (then there is no ok.txt) if no node is left, if the check could not complete, if nothing could be
    decided (busy nodes, or two nodes without --expect), or if the result cannot be written.
    """
    # Imported late: these take longer than an error in the options.
    from earlybird.check.expectations import expected_values
    from earlybird.cli.session import batch_script
    from earlybird.measure.planned_check import planned_check
    from earlybird.present.subjects.check.terminal import print_check

    expected = expected_values(expect or [])
    if expected is not None:
        size = expected.size_with(size)
    if print_script is not None:
        batch_script.check_script(place)
        if plan:
            raise InputError("--plan and --print-script are both given; omit one")
        batch_script.print_check_script(context, output, budget)
        return 0
    with _failure_printed(format):
        planned = planned_check(vars(place) | {"mpi": mpi}, budget, size, note)
    planned.plan.require_stall_limit(stall_limit)
    if output is not None and output.exists():
        raise InputError(f"{output} exists already; give another folder")
    if plan:
        _print_plan(planned.plan, format)
        return 0
    note(planned.plan.sentence())
    scratch = tempfile.TemporaryDirectory(prefix=".earlybird-check-", dir=_shared_folder(output))
    with scratch as folder, _failure_printed(format):
        result = perform_check(planned, min_effect, stall_limit, expected, Path(folder), output, quiet)
    is_open = not result.findings and result.is_open(expected is not None)
    if output is not None:
        _write(result, output, is_open=is_open)
    print_check(result, format)
    _print_exclusion(result)
    if not result.good_hosts():
        return FAILED_VERDICT
    if result.findings:
        return 1
    return FAILED_VERDICT if is_open else 0


def perform_check(
    planned: "PlannedCheck",
    min_effect: float,
    stall_limit_s: float,
    expected: "Expected | None",
    folder: Path,
    output: Path | None,
    quiet: bool,
) -> "Check":
    """Run the check: temporary files go to `folder`, launches and samples to a run folder `output`."""
    from earlybird.cli.session.measuring import create_check_run
    from earlybird.cli.session.progress import shown_progress
    from earlybird.launch.local import MpiexecLauncher
    from earlybird.measure.check import CheckSettings, run_check

    launcher = planned.launcher
    hosts = launcher.hosts if isinstance(launcher, MpiexecLauncher) else ()
    settings = CheckSettings(hosts, min_effect, stall_limit_s, expected)
    run = create_check_run(output, launcher, planned.settings) if output is not None else None
    with shown_progress(quiet) as progress:
        return run_check(launcher, planned.plan, settings, folder, run, progress.step, progress.say)


def _print_plan(plan: "CheckPlan", format: str) -> None:
    if format == "junit":
        raise InputError("--plan has no testcases for --format junit; give table, csv or json")
    value = plan.to_json()
    if not print_data(format, value, [value]):
        print_line(plan.sentence())


@contextmanager
def _failure_printed(format: str) -> Iterator[None]:
    """Print the failure of a check that cannot complete in the formats that programs read."""
    from earlybird.present.subjects.check.terminal import print_failure

    try:
        yield
    except WriteError:
        raise
    except WorkError as error:
        print_failure(str(error), format)
        raise


def _shared_folder(output: Path | None) -> Path:
    """Return a folder that all nodes see: that in which the folder of -o is made, else the current one."""
    return output.parent if output is not None and output.parent.is_dir() else Path.cwd()


def _print_exclusion(result: "Check") -> None:
    """Say how Slurm leaves the bad nodes out, of this job and of all."""
    from earlybird.launch.slurm import node_expression

    if result.launcher != "srun" or not (bad := result.bad_hosts()):
        return
    nodes = quoted(node_expression(bad))
    note(
        f"next: srun --exclude={nodes}, sbatch --exclude={nodes}, or as an administrator: scontrol update "
        f"nodename={nodes} state=drain reason='earlybird check'"
    )


def _write(result: "Check", output: Path, *, is_open: bool) -> None:
    """Write the result and the lists of hosts; `is_open`: nothing was decided, so no host is known to be
    good."""
    good, bad = result.good_hosts(), result.bad_hosts()
    files.write_json(output / "check.json", result.to_json())
    files.write_text(output / "bad.txt", "".join(f"{host}\n" for host in bad))
    if not good or is_open:
        # Given an empty file of hosts, mpiexec would start the application on this machine.
        why = "nothing was decided" if is_open else "no host is left"
        note(f"wrote {output}/bad.txt ({len(bad)} hosts) and no ok.txt, because {why}")
        return
    files.write_text(output / "ok.txt", "".join(f"{host}\n" for host in good))
    note(f"wrote {output}/ok.txt ({len(good)} hosts) and {output}/bad.txt ({len(bad)})")


command = make_command(
    check,
    name="check",
    example=(
        "earlybird check --hosts nodes.txt -o checked; [ $? -le 1 ] && mpiexec -f checked/ok.txt ./app",
        "earlybird check --launcher srun",
    ),
    long_tables=False,
)
