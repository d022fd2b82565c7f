"""`earlybird check`: whether every node and link of a job is as fast as the others."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.options.command import make_command
from earlybird.cli.options.shared import MpiOption, PlaceOptions, PrintScriptOption, QuietOption
from earlybird.data import files, units
from earlybird.data.errors import FAILED_VERDICT, InputError, WorkError, WriteError
from earlybird.data.shell_commands import quoted
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line


class CheckFormat(StrEnum):
    """`--format`; `--json` is short for `--format json`."""

    table = "table"
    csv = "csv"
    json = "json"
    junit = "junit"


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
        str, typer.Option(help="Planned time of both measurements; messages are as large as it allows.")
    ] = "120s",
    size: Annotated[
        str | None,
        typer.Option(help="Size of messages between two nodes.  [default: 16KiB to 1MiB, as time allows]"),
    ] = None,
    expect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHECK|MEASURE=VALUE",
            help="Also find what is slower than this on all nodes: an earlier check (check.json, its folder "
            "or its name in baselines/), or bandwidth=11GB/s, latency=2us, computation, incast, outcast.",
        ),
    ] = None,
    min_effect: Annotated[str, typer.Option(help="A smaller difference counts as none.")] = "10%",
    stall_limit: Annotated[
        str, typer.Option(help="End the check if it makes no progress for this long.")
    ] = "30s",
    plan: Annotated[bool, typer.Option("--plan", help="Print what would be measured and how long.")] = False,
    print_script: PrintScriptOption = None,
    quiet: QuietOption = False,
    format: Annotated[
        CheckFormat, typer.Option(help="How to print the result on stdout.")
    ] = CheckFormat.table,
) -> int:
    """Check whether every node and link of this job is as fast as the others.

    One MPI job with one rank per node measures every pair of nodes (latency, bandwidth in each direction and
    both), each node against all others, the cores, the clock and what else differs between nodes. Values are
    compared with the median of their like; what is suspicious is measured again before it is called bad.

    If the nodes cannot complete it together, pairs of them are launched apart from the others until those at
    fault are named, and the others are checked.

    Exit status: 0 if all are alike, 1 if nodes are to be left out (ok.txt has the others), 2 for wrong input,
    3 if no node is left (then there is no ok.txt), if the check could not complete, if nothing could be
    decided (busy nodes, or two nodes without --expect), or if the result cannot be written.
    """
    from earlybird.cli.session import batch_script
    from earlybird.cli.session.checking import expected_values, perform_check, planned_check
    from earlybird.present.subjects.check.terminal import print_check

    effect = units.parse_fraction(min_effect, "--min-effect")
    budget_s = units.parse_duration(budget, "--budget")
    stall_limit_s = units.parse_duration(stall_limit, "--stall-limit")
    if budget_s <= 0 or stall_limit_s <= 0:
        raise InputError("--budget and --stall-limit must be more than 0 s, such as 60s")
    size_bytes = units.parse_bytes(size, "--size") if size is not None else None
    expected = expected_values(expect or [])
    if expected is not None and expected.size_bytes:
        if size_bytes not in (None, expected.size_bytes):
            raise InputError(
                f"--size is {units.format_bytes(size_bytes)} and the check of --expect had messages of "
                f"{units.format_bytes(expected.size_bytes)}, so bandwidths would differ for that reason; "
                "omit --size"
            )
        size_bytes = expected.size_bytes
    if print_script is not None:
        batch_script.check_script(place)
        if plan:
            raise InputError("--plan and --print-script are both given; omit one")
        batch_script.print_check_script(context, output, budget_s)
        return 0
    with _failure_printed(format):
        planned = planned_check(vars(place) | {"mpi": mpi}, budget_s, size_bytes)
    longest_s = planned.plan.longest_point_s()
    if longest_s > stall_limit_s:
        raise InputError(
            f"one round or incast takes up to {units.format_seconds(round(longest_s, 1))} and --stall-limit "
            f"is {units.format_seconds(stall_limit_s)}; give a longer --stall-limit, or a smaller --size"
        )
    if output is not None and output.exists():
        raise InputError(f"{output} exists already; give another folder")
    if plan:
        _print_plan(planned.plan, format)
        return 0
    note(planned.plan.sentence())
    scratch = tempfile.TemporaryDirectory(prefix=".earlybird-check-", dir=_shared_folder(output))
    with scratch as folder, _failure_printed(format):
        found = perform_check(planned, effect, stall_limit_s, expected, Path(folder), output, quiet)
    if output is not None:
        _write(found, output)
    print_check(found, format)
    _print_exclusion(found)
    if not _good_hosts(found):
        return FAILED_VERDICT
    if found.findings:
        return 1
    return FAILED_VERDICT if found.is_open(expected is not None) else 0


def _print_plan(plan, format: str) -> None:
    from earlybird.present.render.data import print_data

    value = plan.to_json()
    if format == CheckFormat.junit:
        raise InputError("--plan has no testcases for --format junit; give table, csv or json")
    if not print_data(format, value, [value]):
        print_line(plan.sentence())


@contextmanager
def _failure_printed(format: str) -> Iterator[None]:
    """A check that cannot complete has a result, too, in the formats that programs read."""
    from earlybird.present.subjects.check.terminal import print_failure

    try:
        yield
    except WriteError:
        raise
    except WorkError as error:
        print_failure(str(error), format)
        raise


def _shared_folder(output: Path | None) -> Path:
    """All nodes must see it: the folder in which that of -o is made, else the current one."""
    return output.parent if output is not None and output.parent.is_dir() else Path.cwd()


def _good_hosts(found) -> list[str]:
    bad = found.bad_hosts()
    return [host for host in found.hosts if host not in bad]


def _print_exclusion(found) -> None:
    """Say how Slurm leaves the bad nodes out, of this job and of all."""
    from earlybird.launch.slurm import node_expression

    if found.launcher != "srun" or not (bad := found.bad_hosts()):
        return
    nodes = quoted(node_expression(bad))
    note(
        f"next: srun --exclude={nodes}, sbatch --exclude={nodes}, or as an administrator: scontrol update "
        f"nodename={nodes} state=drain reason='earlybird check'"
    )


def _write(found, output: Path) -> None:
    good, bad = _good_hosts(found), found.bad_hosts()
    files.write_json(output / "check.json", found.to_json())
    files.write_text(output / "bad.txt", "".join(f"{host}\n" for host in bad))
    if not good:
        # Given an empty file of hosts, mpiexec would start the application on this machine.
        note(f"wrote {output}/bad.txt ({len(bad)} hosts) and no ok.txt, because no host is left")
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
