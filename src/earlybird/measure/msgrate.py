"""The suite `msgrate`: small messages per second of several threads, by the communicators that they use."""

from earlybird.data.errors import InputError
from earlybird.data.kernels import MSGRATE
from earlybird.data.methods import CONTEXTS, LOWER_LEVELS, MSGRATE_METHODS, PER_THREAD, PROCESSES, SHARED
from earlybird.data.run_keys import MAX_THREADS
from earlybird.measure.groups import (
    MPICH_WHEEL_CONTEXTS,
    Group,
    Options,
    Resources,
    hangs_with_contexts,
    levels_of,
    link_of,
    pair_layout,
    refuse_hanging,
    refuse_large,
)
from earlybird.measure.options import (
    BUFFERS,
    LEVELS,
    SuiteOption,
    number,
    sizes_option,
    threads_option,
)

WINDOW, SIZE_BYTES = 64, 8  # those of the article

_MPICH_CONTEXTS = 64  # the most that an MPICH can be built for; the PyPI build has fewer
_MAX_WINDOW = 65536  # a slip of the pen: no MPI queues more requests well
_MAX_BYTES = 1 << 30  # of a rank's messages at once

MSGRATE_OPTIONS = (
    sizes_option(f"{SIZE_BYTES} B"), BUFFERS, LEVELS,
    SuiteOption("window", f"Messages that a thread has in flight at once.  [default: {WINDOW}]", "window",
                number("--window", f"a number of messages, such as {WINDOW}")),
    threads_option("1, 2, 4, ... up to the cores of a rank"),
    SuiteOption("methods", f"One or more of {', '.join(MSGRATE_METHODS)}.  "
                f"[default: all but {', '.join(LOWER_LEVELS)}]", "methods", choices=MSGRATE_METHODS),
)  # fmt: skip


def msgrate_groups(options: Options, resources: Resources, mpi: str) -> list[Group]:
    """Return windows of messages from every thread of one rank to those of another, on every level.

    Methods without specific settings share launches. Contexts are requested when a launch begins, so the
    method that uses them has separate launches, together with `shared` if an MPI with contexts lets threads
    share a communicator; processes instead of threads are other ranks.
    """
    methods = options.methods or _default_methods(resources)
    _check_methods(methods, options, resources, mpi)
    window = WINDOW if options.window is None else options.window
    if not 1 <= window <= _MAX_WINDOW:
        raise InputError(f"--window is {window}; give 1 to {_MAX_WINDOW} messages, such as {WINDOW}")
    sizes = options.sizes_bytes or (SIZE_BYTES,)
    refuse_large(sizes)
    # Absent for vary, so that points have the keys of earlier runs.
    buffers = {} if options.buffers in (None, "vary") else {"buffers": options.buffers}
    result = []
    for level in levels_of(options, resources):
        if options.methods is not None and CONTEXTS in methods and hangs_with_contexts(level, resources):
            refuse_hanging(f"--methods has {CONTEXTS}")
        for threads in options.threads or _thread_counts(level, resources, options.quick):
            _check_memory(threads, window, max(sizes))
            points = tuple(
                {"mpi": mpi, "level": level, "size_bytes": size, "window": window, "threads": threads}
                | buffers
                for size in sizes
            )
            result += _groups(points, threads, methods, level, resources, mpi)
    if not result:
        raise InputError(
            f"the method {CONTEXTS} differs from the others from 2 threads on; give --threads 2 or more"
        )
    return result


def _groups(points, threads: int, methods, level: str, resources: Resources, mpi: str) -> list[Group]:
    link = link_of(level, resources)
    pair = pair_layout(level, 1, resources)
    found = []
    together = tuple(method for method in (SHARED, PER_THREAD) if method in methods)
    if together:
        found.append(
            Group(MSGRATE.name, pair, points, methods=together, link_bytes_per_s=link, threads=threads)
        )
    has_contexts = threads <= most_contexts(resources, mpi) and not hangs_with_contexts(level, resources)
    if CONTEXTS in methods and threads > 1 and has_contexts:
        # With I_MPI_THREAD_SPLIT, Intel MPI allows calls on a communicator only from its own thread.
        reference = (SHARED,) if SHARED in methods and resources.family == "mpich" else ()
        asking = tuple(point | {"vcis": threads} for point in points)
        more = {"threads": threads, "vcis": threads, "link_bytes_per_s": link}
        found.append(Group(MSGRATE.name, pair, asking, methods=(*reference, CONTEXTS), **more))
    # A thread level is that of a launch.
    found += [
        Group(MSGRATE.name, pair, points, methods=(method,), link_bytes_per_s=link, threads=threads)
        for method in LOWER_LEVELS
        if method in methods
    ]
    if PROCESSES in methods:
        # Within a socket both ranks of a pair count.
        layout = pair_layout(level, 2 * threads if level == "intra_socket" else threads, resources)
        found.append(
            Group(MSGRATE.name, layout, points, methods=(PROCESSES,), link_bytes_per_s=link, threads=1)
        )
    return found


def most_contexts(resources: Resources, mpi: str) -> int:
    """Return the most communication contexts that ranks of this MPI can request; 0 if it has none, limited
    only by the threads if unknown."""
    if resources.family == "mpich":
        return MPICH_WHEEL_CONTEXTS if mpi == "mpich" else _MPICH_CONTEXTS
    return 0 if resources.family == "openmpi" else MAX_THREADS


def _default_methods(resources: Resources) -> tuple[str, ...]:
    return tuple(
        method
        for method in MSGRATE_METHODS
        if method not in LOWER_LEVELS and (method != CONTEXTS or resources.family in ("mpich", "intel"))
    )


def _check_methods(methods: tuple[str, ...], options: Options, resources: Resources, mpi: str) -> None:
    if options.methods is None or CONTEXTS not in methods:
        return
    most = most_contexts(resources, mpi)
    if not most:
        raise InputError(
            f"--methods has {CONTEXTS} and {mpi} has no communication contexts that a program could ask for; "
            "leave it out, or measure MPICH or Intel MPI (--mpi mpich, --mpi intel)"
        )
    for threads in options.threads or ():
        if threads > most:
            raise InputError(
                f"--threads has {threads} and {mpi} has at most {most} communication contexts; give at most "
                f"{most} threads, or leave {CONTEXTS} out of --methods"
            )


def _thread_counts(level: str, resources: Resources, quick: bool) -> tuple[int, ...]:
    """Return 1, 2, 4, ... up to the cores that a rank may have; always 2, marked if there are too few
    cores."""
    cores = resources.cores_per_socket or resources.cores[level]
    most = cores // 2 if level == "intra_socket" else cores
    powers = [1 << k for k in range(max(most, 2).bit_length())]
    return tuple(powers[:2] if quick else powers)


def _check_memory(threads: int, window: int, size_bytes: int) -> None:
    if threads * window * size_bytes > _MAX_BYTES:
        raise InputError(
            f"{threads} threads with windows of {window} messages of {size_bytes} bytes need "
            f"{threads * window * size_bytes} bytes at once; give --sizes, --window and --threads that need "
            f"{_MAX_BYTES} at most"
        )
