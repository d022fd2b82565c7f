"""`earlybird baseline`: keeps what a run measured under a name, to compare later runs with."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from earlybird.cli.options.command import AS_JSON, FORMAT, make_group
from earlybird.data import files
from earlybird.data.baseline import FOLDER, baseline_path, load_baseline, make_folder, save_baseline
from earlybird.data.errors import InputError
from earlybird.data.labels import counted, flavour
from earlybird.data.run import Run
from earlybird.data.shell_commands import command_text
from earlybird.present.render.data import Format, print_data, print_json
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_rows

if TYPE_CHECKING:
    from earlybird.data.check import Check

CHECK = "earlybird.check/1"
FolderOption = Annotated[
    Path, typer.Option("--folder", help="Folder of the baselines, which can live in git.")
]


def baselines_like(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names with which the shell completes `incomplete`."""
    folder = Path(ctx.params.get("folder") or FOLDER)
    return sorted(file.stem for file in folder.glob("*.json") if file.stem.startswith(incomplete))


def save(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the baseline.")],
    source: Annotated[Path, typer.Argument(metavar="RUN/", help="Run folder to keep.")],
    mpi: Annotated[str | None, typer.Option(help="Of a run of several MPIs: the one to keep.")] = None,
    folder: FolderOption = FOLDER,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a baseline that has this name already.")
    ] = False,
    json: bool = AS_JSON,
) -> None:
    """Keep what a run measured: the median of each launch at every point, and the circumstances.

    A baseline changes only by this command: no run and no comparison moves it. That of a run of `earlybird
    check` is for `earlybird check --expect NAME`.
    """
    path = baseline_path(name, folder)
    if path.exists() and not replace:
        raise InputError(f"{path} exists already; choose another name, or replace it with --replace")
    if (check := _check_in(source)) is not None:
        _save_check(check, path, json)
        return
    run = Run.open(source)
    from earlybird.compare.changes import MIN_LAUNCHES
    from earlybird.compare.sides import baseline_of, more_launches, side_of

    side = side_of(run, mpi)
    if side.is_check:
        raise InputError(
            f"{source} is of `earlybird check` and has no check.json, because it did not complete; give one "
            "that did, or a run of `earlybird measure`"
        )
    save_baseline(baseline_of(side, name, run), path)
    note(f"wrote {path}: {counted(len(side.times_s), 'point')} of {flavour(side.mpi)}")
    of_folder = [] if folder == FOLDER else ["--folder", str(folder)]
    compare = ["earlybird", "compare", "--baseline", name, *of_folder, "LATER_RUN/"]
    note(f"next: {command_text(compare)}")
    if (least := min(map(len, side.times_s.values()))) < MIN_LAUNCHES:
        note(
            f"warning: some points have {counted(least, 'launch', 'launches')}; comparisons decide from "
            f"{MIN_LAUNCHES} on: {more_launches(side)}, and save it again"
        )
    if json:
        print_json({"file": str(path), "mpi": side.mpi, "points": len(side.times_s), "launches": least})


def _check_in(source: Path) -> "Check | None":
    """Return the check in a run folder, or None."""
    path = source / "check.json"
    if not path.exists():
        return None
    from earlybird.data.check import load_check

    return load_check(path)


def _save_check(check: "Check", path: Path, prints_json: bool) -> None:
    make_folder(path.parent)
    files.write_json(path, check.to_json())
    note(f"wrote {path}: a check of {counted(len(check.nodes), 'node')}")
    expected = path.stem if path.parent == FOLDER else str(path)
    note(f"next: {command_text(['earlybird', 'check', '--expect', expected])}")
    if prints_json:
        print_json({"file": str(path), "mpi": check.mpi, "nodes": len(check.nodes)})


def list_baselines(folder: FolderOption = FOLDER, format: Format = FORMAT) -> None:
    """List the baselines of a folder."""
    rows = []
    for path in sorted(folder.glob("*.json")):
        try:
            rows.append(_row(path))
        except InputError as error:
            note(f"warning: {path.name} is not listed: {error}")
    if not rows and format is Format.table:
        note(f"there are no baselines in {folder}; save one with `earlybird baseline save NAME RUN/`")
        return
    if not print_data(format, rows, rows):
        cells = [list(row.values()) for row in rows]
        print_rows(list(rows[0]), cells, left=["name", "mpi", "host"])


def _row(path: Path) -> dict[str, Any]:
    if files.read_json(path, "baseline").get("schema") == CHECK:
        from earlybird.data.check import load_check

        check = load_check(path)
        flavour, _, version = check.mpi.partition(" ")
        hosts = f"{check.hosts[0]} to {check.hosts[-1]}" if check.hosts else ""
        links = len(check.nodes) * (len(check.nodes) - 1) // 2
        values = (flavour, version, hosts, "", links, check.launches)
    else:
        baseline = load_baseline(path)
        launches = min((len(point.launch_medians_s) for point in baseline.points), default=0)
        place = baseline.circumstances.get("version", ""), baseline.circumstances.get("host", "")
        values = (baseline.mpi, *place, baseline.started, len(baseline.points), launches)
    keys = ("mpi", "version", "host", "started", "points", "launches")
    return {"name": path.stem} | dict(zip(keys, values, strict=True))


command = make_group(
    [
        ("save", save, "earlybird baseline save mpich-5.0 run/"),
        ("list", list_baselines, "earlybird baseline list"),
    ],
    name="baseline",
    help="Keep what a run measured under a name, to compare later runs with.",
)
