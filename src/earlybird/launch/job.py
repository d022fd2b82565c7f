"""Runs one launch of a kernel: its request, process tree, provenance and samples."""

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from earlybird.data import files, json_text
from earlybird.data.clocks import residual_s
from earlybird.data.contexts import context_variables
from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.data.run import Sample, sample_from_json
from earlybird.launch import interpose, placement, shared_memory
from earlybird.launch.launcher import Heard, Launched, Request
from earlybird.launch.library_statistics import paths_in
from earlybird.launch.mpiexec import Invocation
from earlybird.launch.process import STALL_CAUSE, Ended, Limits, Places, run_tree
from earlybird.launch.variables import (
    recorded_variables,
    refuse_conflicts,
    refuse_placement,
    refuse_replaced,
    variables_to_set,
)
from earlybird.machine.flavours import Flavour
from earlybird.toolchain.build import has_library, kernel_path, library_path, require_library

_SCRATCH = "scratch file"


@dataclass(frozen=True)
class Job:
    """The properties of a launcher, apart from how it starts the ranks.

    Attributes
    ----------
    launcher, binding : the names that provenance stores.
    threads : number per rank.
    watch : called periodically while the ranks run; a returned cause ends the job, None continues it.
    extra : further keys of the launch record.
    one_clock : whether hosts share this machine's clock.
    stall_cause : why its ranks may complete no point for a long time.
    nodes : where its processes on virtual nodes leave files.
    is_one_machine : whether all ranks run on this machine, on virtual nodes or without. Else none reports its
        shared memory: thousands would append to one file of a shared file system.
    """

    launcher: str
    mpi: Flavour
    binding: str
    threads: int = 1
    watch: Callable[[], str | None] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    one_clock: bool = False
    stall_cause: str = STALL_CAUSE
    nodes: Sequence[Places] = ()
    is_one_machine: bool = True


def run_kernel(
    job: Job, invocation: Invocation, request: Request, scratch: Path, progress: Heard
) -> Launched:
    """Write the kernel's request, run the process tree, and read the kernel's output."""
    mpi, out = job.mpi, scratch / "samples.ndjson"
    arguments = [*invocation.before_program, str(kernel_path(mpi, request.kernel)), *invocation.after_program]
    arguments.append(str(write_request(request, job.threads, out)))
    of_points = context_variables(mpi.family, request.vcis, request.streams) | dict(request.environment)
    refuse_conflicts(mpi.settings, invocation.by_arguments)
    refuse_placement(mpi.settings, invocation.placing, invocation.sets())
    refuse_replaced(mpi, request.environment, request.settings.values())
    # What is measured does not depend on what earlier runs have learned, unless the user wants that; a folder
    # of its own rather than `off`, so that message costs are measured as thoroughly as for programs. A
    # launcher may prefer otherwise.
    independent = {"EARLYBIRD_CACHE": str(scratch / "cache")} if request.preload else {}
    set_by_us = variables_to_set(mpi, invocation.env | of_points, independent | dict(invocation.preferred))
    environment = mpi.environment() | dict(mpi.settings) | set_by_us
    recorded = environment  # without what preloading changes, such as PATH
    if request.preload:
        require_library(mpi)
    # A simulated MPI has neither library.
    if request.preload or (interpose.inside_record() and has_library(mpi)):
        arguments, environment = interpose.through_shim(arguments, mpi, environment, request.preload)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    begin_s = time.monotonic()
    shared = out.with_name(f"{out.name}.shared")  # see native/harness/machine/shared_memory.hpp
    if job.is_one_machine:
        shared.touch()

    lines = _GrowingLines(out)

    def count_points() -> int | None:
        new = lines.read_new()
        if lines.count == 0:
            return None  # the first line, the launch record, comes when every rank has started
        if new and lines.count == len(new):
            record = json.loads(new[0])["launch_record"]
            placement.require_placed(request.layout, placement.observed_layout(record["placement"]))
        if new:
            last = json.loads(new[-1]) | {"launch": request.id}
            done = request.points_in(lines.count - 1)
            progress(done, sample_from_json(last) if lines.count > 1 else None)
        return lines.count - 1

    record: dict[str, Any] = {
        "id": request.id,
        "kernel": request.kernel,
        "started": started,
        "flavour": mpi.name,
        "version": mpi.version,
        "launcher": job.launcher,
        "layout": request.layout.text,
        "binding": job.binding,
        "threads_per_rank": job.threads,
        "environment": recorded_variables(mpi, recorded),
        "set_by_launcher": sorted(set_by_us),
        "settings": {
            method: {"communicator": dict(one.communicator), "call": dict(one.call)}
            for method, one in request.settings.items()
        },
        "preloaded": [str(library_path(mpi))] if request.preload else [],
        "command_line": arguments,
        **job.extra,
    }
    try:
        ended = run_tree(
            arguments,
            environment=environment,
            limits=Limits(request.time_limit_s, request.stall_limit_s, job.stall_cause),
            progress=count_points,
            watch=_watch(job, request),
            nodes=job.nodes,
            reported_segments=lambda: shared_memory.reported_in(shared),
        )
    except KeyboardInterrupt:
        ended = Ended(130, "it was interrupted", time.monotonic() - begin_s)
        return replace(_collect(request, record, out, ended, job), interrupted=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise InputError(f"{arguments[0]} cannot be started ({error}); run `earlybird doctor`") from error
    return _collect(request, record, out, ended, job)


def _watch(job: Job, request: Request) -> Callable[[], str | None] | None:
    stop = request.stop
    if stop is None:
        return job.watch

    def watch() -> str | None:
        return "it was no longer needed" if stop.is_set() else job.watch and job.watch()

    return watch


def refuse_conflicts_ahead(
    mpi: Flavour, invocation: Callable[[Layout, Path], Invocation], layout: Layout
) -> None:
    """Raise InputError, before anything is measured or written, for a variable of the user that conflicts
    with what the ranks of `layout` need."""
    with tempfile.TemporaryDirectory() as folder:
        made = invocation(layout, Path(folder))
        refuse_conflicts(mpi.settings, made.env | made.by_arguments)
        refuse_placement(mpi.settings, made.placing, made.sets())


def _collect(request: Request, record: dict[str, Any], out: Path, ended: Ended, job: Job) -> Launched:
    header, samples = read_scratch(out, request.id)
    observed = placement.observed_layout(header.pop("placement", []))
    num_hosts = len({entry["host"] for entry in observed})
    if paths := paths_in(ended.output):
        record["paths"] = paths
    if "clock" in header:
        header["clock"]["residual_s"] = _clock_residual_s(samples, num_hosts == 1 or job.one_clock)
    record |= header | {
        "placement": observed,
        # The library does not report which path messages take within a node or between nodes.
        "transport": {0: "unknown", 1: "intra-node"}.get(num_hosts, "inter-node"),
        "exit": ended.exit_status,
        "duration_s": round(ended.duration_s, 3),
    }
    cause = ended.cause
    done = request.points_in(len(samples))
    if cause is None and done < len(request.points):
        # Open MPI's prterun 5.0.11 ends with 0 when a node dies while ranks are being started on it.
        cause_from_watch = job.watch() if job.watch else None
        ended_early = f"it ended after {done} of {len(request.points)} points without an error message"
        cause = cause_from_watch or ended_early
    if cause is not None:
        record["cause"] = cause
    return Launched(record, samples, cause)


def _clock_residual_s(samples: Sequence[Sample], one_clock: bool) -> float | None:
    """Return the largest difference between clocks; None if every time is a difference of readings of one
    rank's clock."""
    residuals_s = [value for sample in samples if (value := residual_s(sample)) is not None]
    return max(residuals_s) if residuals_s else 0.0 if one_clock else None


def write_request(request: Request, threads: int, out: Path) -> Path:
    """Write the request that the kernel reads next to its output file `out`; return the path of the
    request."""
    options: dict[str, Any] = {"out": str(out), "threads": threads, "seed": request.seed}
    options["ranks"] = request.layout.num_ranks
    options |= vars(request.rules)
    if request.mean_over_ranks:
        options["over_ranks"] = "mean"
    if request.methods:
        options["methods"] = list(request.methods)
    if request.pattern is not None:
        pattern = out.with_name("pattern.bin")
        pattern.write_bytes(request.pattern.triples().tobytes())
        options["pattern"] = str(pattern)
    if variables := {method: one.variables() for method, one in request.settings.items() if one.variables()}:
        options["control_variables"] = variables
    points = [dict(point) for point in request.points]
    if request.verifying:
        points[0]["verify"] = 1
    path = out.with_name("request.json")
    path.write_text(json.dumps({"options": options, "points": points}, allow_nan=False))
    return path


class _GrowingLines:
    """A reader of the complete lines of a growing file, which returns each line once."""

    def __init__(self, path: Path):
        self._path, self._offset, self.count = path, 0, 0

    def read_new(self) -> list[bytes]:
        if not self._path.exists():
            return []
        new = b"".join(files.read_blocks(self._path, _SCRATCH, memory_per_byte=2, begin=self._offset))
        new = new[: new.rfind(b"\n") + 1]
        self._offset += len(new)
        self.count += new.count(b"\n")
        return new.splitlines()


def read_scratch(path: Path, launch_id: str) -> tuple[dict[str, Any], list[Sample]]:
    """Return the launch record and the complete samples that a kernel wrote; omit a line cut short by a
    death."""
    texts = files.read_whole_lines(path, _SCRATCH) if path.exists() else ()
    lines = [json_text.parse_json(text) for text in texts]
    if not lines:
        return {}, []
    samples = [sample_from_json(line | {"launch": launch_id}, f"{path}") for line in lines[1:]]
    return lines[0]["launch_record"], samples
