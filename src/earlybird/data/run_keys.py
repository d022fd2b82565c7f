"""Types and ranges of the keys of run.json, launches, points and facts of nodes, all optional."""

from datetime import UTC, datetime
from typing import Annotated, Any, Required, TypedDict, get_args, get_type_hints

import msgspec

from earlybird.data.errors import InputError
from earlybird.data.kernels import KERNELS
from earlybird.data.methods import NOISE_MODELS, PACKINGS, RECEIVERS
from earlybird.data.paths import SizePaths
from earlybird.data.schema import (
    Bytes,
    Count,
    Natural,
    NotNegative,
    Rank,
    Ranks,
    check_keys,
    form,
)
from earlybird.data.units import MAX_S

MAX_LAUNCHES = 10_000
# Of a rank; a larger count is a typing mistake, see native/harness/request/request.cpp.
MAX_THREADS = 1024
MAX_SEED = 2**63 - 1

Text = str | None
Flag = bool | None
Seconds = Annotated[float, msgspec.Meta(ge=0, le=MAX_S)] | None
PositiveSeconds = Annotated[float, msgspec.Meta(gt=0, le=MAX_S)]
Number = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
Threads = Annotated[int, msgspec.Meta(ge=1, le=MAX_THREADS)] | None
Whole = Natural | None
Amount = NotNegative | None
Plain = str | int | float | bool | None
# Those of native/kernels/computing/noise.hpp, which says what each of them is.
Noise = Annotated[str, form(f"^({'|'.join(NOISE_MODELS)})$", f"one of {', '.join(NOISE_MODELS)}")] | None
Receivers = Annotated[str, form(f"^({'|'.join(RECEIVERS)})$", " or ".join(RECEIVERS))] | None
Packing = Annotated[str, form(f"^({'|'.join(PACKINGS)})$", f"one of {', '.join(PACKINGS)}")] | None
# Of cells and of processes.
_EXTENT = "[1-9][0-9]{0,8}"
Grid = (
    Annotated[str, form(f"^{_EXTENT}x{_EXTENT}x{_EXTENT}$", "three numbers from 1 up, such as 8x8x4")] | None
)


class Cache(TypedDict, total=False):
    """A level of the caches of a machine.

    Attributes
    ----------
    level : 1 for L1.
    size_bytes : size of one cache.
    shared_by_cpus : the CPUs that share it, as the kernel lists them.
    """

    level: Whole
    size_bytes: Bytes | None
    shared_by_cpus: Text


class Machine(TypedDict, total=False):
    """The host on which a command ran.

    Attributes
    ----------
    host : name of the host.
    cpu_model, architecture : names that the kernel reports.
    cores : number of cores that the command may use.
    cores_per_socket : number of these cores in each socket.
    sockets : number of sockets that the command may use.
    hardware_threads : number of hardware threads that the command may use.
    caches : caches of one core.
    memory_bytes : memory of the machine.
    kernel : name and version of the operating system.
    governor : governor of the frequency of cores, or `unknown`.
    virtualized : whether it is a virtual machine.
    load : mean of a minute, or of 1, 5 and 15 minutes.
    """

    host: Text
    cpu_model: Text
    architecture: Text
    cores: Whole
    cores_per_socket: list[Natural] | None
    sockets: Whole
    hardware_threads: Whole
    caches: list[Cache] | None
    memory_bytes: Bytes | None
    kernel: Text
    governor: Text
    virtualized: Flag
    load: Amount | list[NotNegative]


class EffortKeys(TypedDict, total=False):
    """The limits of a measurement.

    Attributes
    ----------
    launches : number of launches of each group of points.
    paper : whether the stop rule of the papers is used instead of intervals.
    seed : seed of the order of points and of noise.
    time_limit_s : time after which a launch is ended.
    stall_limit_s : time after which a launch without new samples is ended.
    min_iterations : smallest number of iterations of each point.
    target : half-width of the interval at which a point is complete, over its median.
    budget_s : time for all suites together.
    """

    launches: Annotated[int, msgspec.Meta(ge=1, le=MAX_LAUNCHES)]
    budget_s: PositiveSeconds
    paper: bool
    seed: Annotated[int, msgspec.Meta(ge=0, le=MAX_SEED)]
    time_limit_s: PositiveSeconds
    stall_limit_s: PositiveSeconds
    min_iterations: Annotated[int, msgspec.Meta(ge=1, lt=2**31)]
    target: Annotated[float, msgspec.Meta(gt=0, le=1)]


class Settings(TypedDict, total=False):
    """The options that a run was started with; the settings of a suite have further keys.

    Attributes
    ----------
    suites : names of the measured suites.
    mpi : the MPI, or several MPIs or settings of one.
    launcher : the launcher of the ranks, as `--launcher`.
    hosts, agent : hosts and agent, as `--hosts` and `--agent`.
    network : the links of a virtual cluster or the simulated machine.
    nodes : number of nodes of the virtual cluster.
    against : the folder of the run that this one repeats.
    layout_text : the layout of a replay as it was given.
    profile : the profiles that a replay is compared with.
    stages : the messages of each exchange of a replay that follow each other.
    threads : number of threads per rank.
    thread_counts : numbers of threads to compare, as `--threads` of `msgrate`.
    quick : whether fewer points are measured in less time.
    empty : whether the messages are also replayed without data.
    packing, packing_by, packing_cache : how the messages of a replay are packed, after `--packing`, and the
        caches of the prediction that it is compared with.
    imported : whether the times come from another benchmark.
    without_dead_nodes : whether nodes that do not answer are left out.
    map_by : mapping, as `--map-by`.
    reproduce, step : the paper whose figures are measured, and the step of it.
    mpis : the MPIs to measure.
    budget_s : time for the figures of a paper.
    effort : the limits of the measurement.
    """

    suites: Annotated[list[str], msgspec.Meta(min_length=1)]
    mpi: list[str] | str | None
    launcher: str
    hosts: Text
    agent: Text
    network: Text
    nodes: Ranks | None
    against: Text
    layout_text: Text
    profile: list[str]
    stages: list[Natural]
    threads: Threads
    thread_counts: Text
    quick: bool
    empty: bool
    packing: Text
    packing_by: Text
    packing_cache: Text
    imported: bool
    without_dead_nodes: bool
    map_by: Text
    reproduce: Text
    step: Text
    mpis: list[str]
    budget_s: Seconds
    effort: EffortKeys


class Header(TypedDict, total=False):
    """The JSON object in `run.json`.

    Attributes
    ----------
    id : name of the run.
    started : date and time in ISO 8601.
    machine : the host on which the command ran.
    command : the command and its arguments.
    seed : seed of the order of points.
    earlybird : version of earlybird that measured.
    settings : settings of the run, required by `--resume` and `--against`.
    """

    id: str
    started: Text
    machine: Machine | None
    command: list[str] | None
    seed: Annotated[int, msgspec.Meta(ge=0, le=MAX_SEED)] | None
    earlybird: Text
    settings: Settings | None


class Clock(TypedDict, total=False):
    """The clock of a launch.

    Attributes
    ----------
    resolution_s : smallest observed step.
    overhead_s : median cost of a reading.
    residual_s : 0 when all ranks read one clock; otherwise the largest `clock_residual_s` of the samples, or
        null when every time is a difference of readings of one rank's clock.
    """

    resolution_s: Seconds
    overhead_s: Seconds
    residual_s: Seconds


class Place(TypedDict, total=False):
    """The place where a rank ran, observed after MPI_Init.

    Attributes
    ----------
    rank : rank in MPI_COMM_WORLD.
    host : name of the host; under `srun` the name that Slurm has for it.
    cpus : CPUs that the rank may use.
    sockets : sockets of these CPUs.
    node : number of the host, in order of appearance.
    socket : number of the socket; null when the CPUs span several.
    threads : CPUs that each thread may use, with several threads per rank.
    """

    rank: Whole
    host: Text
    sockets: list[Number] | None
    cpus: list[Natural] | None
    node: Whole
    socket: Number | None
    threads: list[list[Natural]] | None


class Launch(TypedDict, total=False):
    """A launch, whether it succeeded or failed.

    Attributes
    ----------
    id : the text in `launch` of samples.
    kernel : the measuring program.
    started : date and time in ISO 8601.
    flavour, version : flavour and version of the MPI.
    launcher : the launcher of the ranks.
    layout, binding : layout and binding as requested.
    command_line : command line of the launcher.
    environment : variables that begin with `MPIR_ MPICH_ OMPI_ PMIX_ PRTE_ I_MPI_ UCX_ FI_ HYDRA_ SLURM_ OMP_
        EARLYBIRD_`, and those that `--env` names for any side of the run; null: not set.
    set_by_launcher : the variables of `environment` that earlybird set, as opposed to the user.
    control_variables : integer MPI_T variables whose names contain eager, rendezvous or threshold.
    settings : `collective`: for each method, the control variables written before its communicator was
        created (`communicator`) and before its calls (`call`).
    library_version, mpi_standard : texts that the MPI reports.
    thread_level : thread level that MPI_Init_thread provided: `single`, `funneled`, `serialized` or
        `multiple`.
    threads_per_rank : the value of `--threads`, 1 if absent.
    transport : `intra-node` when all ranks were on one host, `inter-node` otherwise, `unknown` when the
        launch ended before it reported its placement.
    clock : the clock with which it measured.
    oversubscribed : whether a node had more rank threads than usable cores.
    placement : where each rank ran.
    network : virtual cluster: a description of its links.
    link : virtual cluster: the measurements of its links before this session.
    link_at_start : virtual cluster: the measurements of its links when the cluster started.
    node_received_bytes : virtual cluster: bytes that each node received over its link during the launch; null
        when the link was lost.
    tool, hidden, file, sha256, datatype : `import`: the benchmark and its version, the values that its text
        does not show, the file and its digest, the MPI datatype that it printed.
    statistic : `import` of earlier versions: statistic as in samples.
    srun : the arguments of `--srun`.
    paths : on which [paths](../node-memory.md) the starts of libearlybird travelled, for each size of
        requests; with `EARLYBIRD_STATS=1` only.
    cause : cause of a failure; absent on success.
    exit : exit status of the launch.
    duration_s : duration of the launch.
    """

    id: Text
    kernel: Text
    started: Text
    flavour: Text
    version: Text
    launcher: Text
    layout: Text
    binding: Text
    command_line: list[str] | None
    environment: dict[str, Text] | None
    set_by_launcher: list[str] | None
    control_variables: dict[str, Plain] | None
    settings: dict[str, Any] | None
    library_version: Text
    mpi_standard: Text
    thread_level: Text
    threads_per_rank: Threads
    transport: Text
    clock: Clock | None
    oversubscribed: Flag
    placement: list[Place] | None
    network: Text
    link: dict[str, Any] | None
    link_at_start: dict[str, Any] | None
    node_received_bytes: list[Bytes | None] | None
    tool: Text
    hidden: Text
    file: Text
    sha256: Text
    datatype: Text
    statistic: Text
    paths: list[SizePaths] | None
    cause: Text
    exit: Number | None
    duration_s: Seconds
    srun: Any


class Config(TypedDict, total=False):
    """The values that identify a point: keys by which points are ordered, grouped and drawn."""

    mpi: str
    level: str
    operation: str
    size_bytes: Bytes
    competitors: Whole
    ranks: Ranks
    root: Rank
    window: Count | None
    partitions: Count | None
    vcis: Whole
    repeats: Whole
    gamma_s_per_byte: Amount
    delay_s: Seconds
    layout: Text
    map_by: Text
    topology: Text
    skew: Amount
    buffers: Text
    receiver: Text


class _OwnConfig(Config, total=False):
    """The keys of the kernels that `measure` runs; the kernels of imports may have the same keys with other
    values."""

    threads: Ranks | None
    compute_s_per_byte: Amount
    epsilon: Amount
    delta: Amount
    compute_s: Seconds
    receivers: Receivers
    packing: Packing
    packing_by: Text
    noise: Noise
    noise_share: Amount
    cache: Text
    scaling: Text
    process_grid: Grid
    cells: Grid
    variables: Count | None
    stencil: Whole
    planes_per_block: Whole
    periodic: Text


def _requiring(*keys: str) -> Any:
    """Return a type like `_OwnConfig` in which these keys are required and not None."""
    if unknown := set(keys) - get_type_hints(_OwnConfig).keys():
        raise ValueError(f"required keys of a point without a type in _OwnConfig: {unknown}")
    required: Any = Required
    types: Any = {
        name: required[_without_none(kind)] if name in keys else kind
        for name, kind in get_type_hints(_OwnConfig, include_extras=True).items()
    }
    return TypedDict("Config", types, total=False)  # type: ignore[operator]  # made from another one


def _without_none(kind: Any) -> Any:
    others = [one for one in get_args(kind) if one is not type(None)]
    return others[0] if len(others) < len(get_args(kind)) else kind


# By kernel. An import may not know the level of a ping-pong.
_CONFIGS = {name: _requiring(*kernel.requires) for name, kernel in KERNELS.items()}


def config_types(record: Any) -> Any:
    """Return the keys of the `config` of a record that has a `kernel`, with the keys from which its figures
    are computed."""
    return _CONFIGS.get(record.kernel, Config)


CONFIG_TYPES = {"config": config_types}


class SampleKeys(TypedDict, total=False):
    """Further keys of a sample, from which figures are computed; lists of numbers are checked where they are
    read.

    Attributes
    ----------
    delayed_ranks : `delayed_completion`: the rank that called `config.delay_s` late in each iteration. Ranks
        that waited for it, according to `rank_times_s`, are below it in the tree of the algorithm, or above
        it.
    sent_bytes, messages, partitions_sent : motifs: what all ranks together send in an iteration; partitions
        of partitioned messages.
    thread_times_s : `msgrate`: a row per iteration, a column per thread: seconds per window from the thread's
        first message to its last completion, the larger of the times of the sending and of the receiving
        thread.
    delay_s, delays_s : `pipeline`: the requested delay (the computation time of a thread, when all partitions
        are computed), and the delay of each iteration, which `times_s` excludes.
    ready_s, returned_s, arrived_s : `partitioned`: a row per iteration, a column per partition, since rank
        0's start: `MPI_Pready` is called, has returned, the receiver has the partition.
    joined_s, completed_s : `partitioned`: one per iteration: the threads of rank 0 join; the receive is
        complete.
    compute_s : `partitioned`: a row per iteration, a column per thread: the drawn computation times.
    seed : `partitioned`: determines `compute_s`.
    work_per_s : `partitioned`: steps of computation per second of each thread, 0 without computation.
    line_hot_s, line_cold_s : `partitioned` with a cold cache: per rank, the median time of a load before and
        after the caches are emptied.
    flushed_bytes : `partitioned` with a cold cache: memory that is read to empty them.
    split_s : [motifs](../motifs.md#time-and-its-parts): a row per iteration, in it for each rank the seconds
        of computation, communication and waiting.
    clock : behind times that begin at the start of rank 0 (`pipeline`, `partitioned`, `completion`) or of the
        first rank (`exchange`, `msgrate`, `collective`, motifs): `one` that all ranks read, or the
        `synchronised` clocks of [several nodes](../placement.md#clocks-of-several-nodes); `each rank's own`
        when every time begins and ends on one rank.
    clock_residual_s, clock_round_trip_s : with `synchronised`: the clock difference found by exchanges that
        were not used for the synchronisation, and the round trip of the exchanges that were used.
    """

    delayed_ranks: list[Rank]
    sent_bytes: Bytes
    messages: Natural
    partitions_sent: Natural
    thread_times_s: Any
    delay_s: Any
    delays_s: Any
    ready_s: Any
    returned_s: Any
    arrived_s: Any
    joined_s: Any
    completed_s: Any
    compute_s: Any
    seed: Any
    work_per_s: Any
    line_hot_s: Any
    line_cold_s: Any
    flushed_bytes: Any
    split_s: Any
    clock: Any
    clock_residual_s: Any
    clock_round_trip_s: Any


# Of records that may leave out what all points have in common.
ANY_CONFIG_TYPES = {"config": Config}


class Summary(TypedDict, total=False):
    """The description of a recording as a whole, in `recording.json`.

    Attributes
    ----------
    command : the command, as given to `earlybird record`.
    watched : whether `earlybird exec --stuck` wrote it, which counts nothing.
    started : date and time in ISO 8601.
    versions : versions of earlybird and the MPI.
    host : the node on which it was started, as `machine` of a run.
    """

    command: list[str] | None
    watched: bool
    started: Text
    versions: dict[str, Text] | None
    host: Machine | str | None


class Interface(TypedDict, total=False):
    """A network interface, or a port of InfiniBand.

    Attributes
    ----------
    mtu, state, rate_mbit, driver : properties of a network interface, as the kernel shows them.
    rate : rate of an InfiniBand port.
    """

    mtu: Plain
    state: Plain
    rate_mbit: Plain
    rate: Plain
    driver: Plain


class Facts(TypedDict, total=False):
    """The properties and limits of a node.

    Attributes
    ----------
    kernel : version of Linux.
    hardware_threads : number of hardware threads of the node.
    cores, cpus : cores that the job may use, and one CPU of each.
    compute_s, compute_cpu_s : elapsed and CPU time of the reference computation on each of `cpus`.
    cpu_limit : number of cores that the control group allows; absent without a limit.
    governor : governor of the frequency of cores.
    numa_nodes : number of NUMA nodes.
    memory_bytes : memory of the node.
    transparent_huge_pages : the setting of the kernel.
    shm_bytes : size of /dev/shm.
    ptrace_scope : the setting of the kernel.
    smt : `on` or `off`.
    interfaces : interfaces by name.
    load : mean load of a minute.
    load_of_others : number of processes that ran or waited for a core before and after the messages, without
        the rank.
    stolen_share : share of CPU time taken by the hypervisor.
    mpi_version, mpi_file : version and file of the MPI library that is loaded.
    settings : variables of the environment that concern the MPI.
    device : the device that carried the messages.
    huge_pages : number of reserved huge pages.
    single_copy : whether a process may copy from the memory of another one.
    """

    kernel: Text
    hardware_threads: Amount
    cores: Amount
    cpus: list[Natural] | None
    compute_s: list[Seconds] | None
    compute_cpu_s: list[Seconds] | None
    cpu_limit: Amount
    governor: Text
    numa_nodes: Amount
    memory_bytes: Amount
    huge_pages: Amount
    transparent_huge_pages: Text
    shm_bytes: Amount
    single_copy: Flag
    smt: Text
    interfaces: dict[str, Interface] | None
    load: Amount
    load_of_others: Amount
    stolen_share: Amount
    mpi_version: Text
    mpi_file: Text
    settings: dict[str, Plain] | None
    device: Text
    ptrace_scope: Any


def check_header(header: dict[str, Any], where: str) -> None:
    """Raise InputError naming the first key of run.json that has another type or is out of range."""
    check_keys(header, Header, where, "give a folder that `measure` wrote")
    check_date(header.get("started"), where)


def check_launch(launch: dict[str, Any], where: str) -> None:
    """Raise InputError naming the first key of a launch that has another type or is out of range."""
    check_keys(launch, Launch, where, "the file was changed by hand")
    check_date(launch.get("started"), where)


def check_summary(facts: dict[str, Any], where: str) -> None:
    """Raise InputError naming the first key of the description of a recording that has another type or is out
    of range."""
    check_keys(facts, Summary, where, "give a folder that `earlybird record` wrote")
    check_date(facts.get("started"), where)


def check_date(text: str | None, where: str) -> None:
    """Raise InputError for a calendar date that no clock in another time zone shows; other text is accepted
    unchanged."""
    try:
        datetime.fromisoformat(text or "").astimezone(UTC)
    except ValueError:
        return
    except OverflowError:
        raise InputError(
            f"{where}: started is {text!r}, which is no time of the calendar; give one, such as "
            "2026-11-21T02:16:36+00:00"
        ) from None
