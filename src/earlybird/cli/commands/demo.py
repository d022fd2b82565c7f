"""`earlybird demo`: the whole workflow on this machine."""

import contextlib
import os
import shutil
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from earlybird.cli.options.command import AS_JSON, make_command
from earlybird.cli.options.shared import MpiOption, QuietOption
from earlybird.cli.options.values import DURATION, as_written
from earlybird.cli.session.demo_place import chosen_place
from earlybird.cli.session.measuring import create_run, run_session
from earlybird.data import kernels
from earlybird.data.comparison import Comparison
from earlybird.data.errors import InputError
from earlybird.data.files import write_json
from earlybird.data.layout import Layout, parse_layout
from earlybird.data.pattern import save_pattern
from earlybird.data.profile import save_profile
from earlybird.data.shell_commands import path_argument
from earlybird.machine import hardware
from earlybird.measure import suites
from earlybird.measure.effort import Effort, suited_to
from earlybird.measure.groups import Options, Resources
from earlybird.measure.launch_counts import DEFAULT_LAUNCHES
from earlybird.measure.launchers import make_launcher
from earlybird.measure.replays import compare_run, predict_all
from earlybird.predict import Predictor
from earlybird.present.render.data import print_json
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line, print_text
from earlybird.present.subjects.exchange.terminal import print_errors

SUITES = kernels.OF_MESSAGES
MIN_RANKS = 4
NUM_CELLS = 200_000
BYTES_PER_CELL = 40  # five unknowns in double precision, as in a compressible-flow solver
# With twenty species more; the exchange over virtual links then takes tens of milliseconds, compared with
# which ranks wait little for their cores.
LINK_BYTES_PER_CELL = 200
HALO_WIDTH = 2
REPLAY_LAUNCHES = 10
# Shares of the budget; the rest is for fitting, making the mesh and writing the page.
MEASURE_SHARE, REPLAY_SHARE = 0.55, 0.2


def demo(
    mpi: MpiOption = None,
    launcher: Annotated[
        str | None,
        typer.Option(
            help="As --launcher of measure.  "
            "[default: local; with fewer than 4 cores a virtual cluster if possible]"
        ),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option(help="Ranks of the exchange.  [default: one per core, or as suits the launcher]"),
    ] = None,
    budget: Annotated[float, typer.Option(help="Approximate time for everything."), DURATION] = as_written(
        "60s"
    ),
    output: Annotated[Path, typer.Option("-o", "--output", help="Page to write.")] = Path("report.html"),
    keep: Annotated[
        Path | None, typer.Option(help="Folder for the raw data.  [default: demo-runs/TIME]")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the mesh and of the order of launches.")] = 1,
    quiet: QuietOption = False,
    json: bool = AS_JSON,
) -> None:
    """Measure this machine, fit, predict a mesh exchange, replay it on real MPI, and write one page.

    With fewer than 4 cores, ranks would share them, which no model describes: a virtual cluster is started
    then, and ended again. If that is not possible, there are as many ranks as cores.
    """
    begin_s = time.monotonic()
    with contextlib.ExitStack() as stack:
        if launcher is None and ranks is None:
            launcher, ranks = stack.enter_context(chosen_place(mpi))
        launcher = launcher or "local"
        folder, layout, comparison, text = _run(mpi, launcher, ranks, budget, output, keep, seed, quiet)
    spent_s = time.monotonic() - begin_s
    if json:
        done = {"page": str(output), "data": str(folder), "launcher": launcher, "layout": layout.text}
        print_json(done | {"spent_s": spent_s, "comparison": comparison.to_json()})
        return
    print_text(f"{text}\n")
    print_errors(comparison)
    command = "earlybird" if shutil.which("earlybird") else path_argument(sys.argv[0])
    print_line()
    print_line(f"report: {output}; raw data: {folder}; {spent_s:.0f} s in total")
    arguments = f"{path_argument(folder / 'mesh.csv')} --profile {path_argument(folder / 'profile.json')}"
    print_line(f"next: {command} predict {arguments} --layout {layout.text}")


def _run(
    mpi: str | None,
    launcher: str,
    ranks: int | None,
    budget_s: float,
    output: Path,
    keep: Path | None,
    seed: int,
    quiet: bool,
) -> tuple[Path, Layout, Comparison, str]:
    """Return the folder and the layout of a demo, the comparison, and the text for the terminal."""
    place = {"launcher": launcher, "mpi": mpi}
    starter, resources = make_launcher(place, seed, note)
    layout = _layout(ranks, resources)
    num_ranks = layout.num_ranks
    starter.check(layout)
    folder = _new_folder(keep)

    _say(1, f"measuring {starter.flavour} on this machine ({', '.join(SUITES)})")
    levels = ("intra_socket", "inter_node") if layout.num_nodes > 1 else ("intra_socket",)
    competitors = _competitors(num_ranks // layout.num_nodes)
    options = Options(quick=True, competitors=competitors, levels=levels)
    chosen = suites.find_suites(SUITES)
    groups = [group for suite in chosen for group in suite.groups(options, resources, starter.flavour)]
    effort = suited_to(resources, Effort(DEFAULT_LAUNCHES, MEASURE_SHARE * budget_s, seed=seed))
    run = create_run(folder / "run", "run", effort, starter, {"suites": list(SUITES), **place})
    run_session(run, starter, groups, effort, quiet, resumable=False)

    # These imports take a second; a wrong option must be reported before them.
    from earlybird.fit.observations import read_runs
    from earlybird.fit.profile import fit_profile
    from earlybird.patterns.ghost import ghost_exchange
    from earlybird.patterns.mesh import tetrahedral_mesh
    from earlybird.patterns.partition import partition_cells
    from earlybird.present.material import collect
    from earlybird.present.render.html import write_page
    from earlybird.present.render.text import render

    _say(2, "fitting models")
    profile = fit_profile(read_runs([run.path]))
    save_profile(profile, folder / "profile.json")

    _say(
        3,
        f"partitioning a mesh of about {NUM_CELLS} tetrahedra into {num_ranks} parts, predicting its "
        "exchange",
    )
    graph = tetrahedral_mesh(NUM_CELLS, seed)
    part = partition_cells(graph, num_ranks, seed)
    size_bytes = BYTES_PER_CELL if resources.link_bytes_per_s is None else LINK_BYTES_PER_CELL
    pattern = ghost_exchange(graph, part, bytes_per_cell=size_bytes, halo_width=HALO_WIDTH)
    save_pattern(pattern, folder / "mesh.csv")
    predictions = predict_all(pattern, layout, profile, note=note)
    write_json(folder / "prediction.json", Predictor(pattern, layout).predict(profile).to_json())

    _say(4, "replaying the exchange on real MPI")
    effort = suited_to(resources, Effort(REPLAY_LAUNCHES, REPLAY_SHARE * budget_s, seed=seed))
    replayed = create_run(
        folder / "replay", "replay", effort, starter, {"layout": layout.text, **place},
        lambda folder: save_pattern(pattern, folder / "pattern.npz"),
    )  # fmt: skip
    groups = suites.exchange_groups(pattern, layout, starter.flavour, resources.link_bytes_per_s)
    run_session(replayed, starter, groups, effort, quiet, resumable=False)
    comparison = compare_run(replayed, pattern, layout, [profile], profile, predictions, note=note)

    _say(5, f"writing {output}")
    material = collect([run.path, folder / "profile.json", folder / "prediction.json", replayed.path])
    write_page(material, output)
    return folder, layout, comparison, render(material)


def _new_folder(keep: Path | None) -> Path:
    """Create the folder `keep`, or one named after the time; two concurrent demos get different folders."""
    folder = keep or Path("demo-runs") / f"{datetime.now():%Y%m%d-%H%M%S}"
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        if keep is None:
            return _new_folder(folder.with_name(f"{folder.name}-{os.getpid()}"))
        raise InputError(f"{keep} already exists; give another folder with --keep") from error
    return folder


def _layout(ranks: int | None, resources: Resources) -> Layout:
    """Return one node with a rank per core of a socket, at least MIN_RANKS; on a cluster, two ranks on each
    node."""
    nodes = resources.nodes
    if nodes > 1:
        ranks = 2 * nodes if ranks is None else ranks
        if ranks < nodes or ranks % nodes:
            raise InputError(
                f"--ranks is {ranks}, but the cluster has {nodes} nodes; give a multiple of {nodes}"
            )
        return parse_layout(f"{nodes}x1x{ranks // nodes}")
    if ranks is None:
        most = max(len(socket) for socket in hardware.cores_by_socket())
        ranks = max(MIN_RANKS, most - most % 2)
    if ranks < 2:
        raise InputError(f"--ranks is {ranks}; an exchange needs 2 or more")
    return parse_layout(f"1x1x{ranks}")


def _competitors(num_ranks: int) -> tuple[int, ...]:
    """Return 1, 2, 4, ... and `num_ranks` rounded up to an even number."""
    last = num_ranks + num_ranks % 2
    return tuple(sorted({1, 2, last} | {1 << k for k in range(1, last.bit_length()) if 1 << k < last}))


def _say(step: int, text: str) -> None:
    note(f"[{step}/5] {text}")


command = make_command(demo, name="demo", example="earlybird demo --mpi openmpi --ranks 8")
