"""Types and ranges of the keys of run.json, launches, points and facts of nodes, all optional."""

from datetime import UTC, datetime
from typing import Annotated, Any, Required, TypedDict, get_args, get_type_hints

import msgspec

from earlybird.data.errors import InputError
from earlybird.data.kernels import KERNELS
from earlybird.data.methods import NOISE_MODELS, PACKINGS, RECEIVERS
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
    level: Whole
    size_bytes: Bytes | None
    shared_by_cpus: Text


class Machine(TypedDict, total=False):
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
    launches: Annotated[int, msgspec.Meta(ge=1, le=MAX_LAUNCHES)]
    budget_s: PositiveSeconds
    paper: bool
    seed: Annotated[int, msgspec.Meta(ge=0, le=MAX_SEED)]
    time_limit_s: PositiveSeconds
    stall_limit_s: PositiveSeconds
    min_iterations: Annotated[int, msgspec.Meta(ge=1, lt=2**31)]
    target: Annotated[float, msgspec.Meta(gt=0, le=1)]


class Settings(TypedDict, total=False):
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
    imported: bool
    without_dead_nodes: bool
    map_by: Text
    reproduce: Text
    effort: EffortKeys


class Header(TypedDict, total=False):
    id: str
    started: Text
    machine: Machine | None
    command: list[str] | None
    seed: Annotated[int, msgspec.Meta(ge=0, le=MAX_SEED)] | None
    earlybird: Text
    settings: Settings | None


class Clock(TypedDict, total=False):
    resolution_s: Seconds
    overhead_s: Seconds
    residual_s: Seconds


class Place(TypedDict, total=False):
    rank: Whole
    host: Text
    sockets: list[Number] | None
    cpus: list[Natural] | None
    node: Whole
    socket: Number | None
    threads: list[list[Natural]] | None


class Launch(TypedDict, total=False):
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
    cause: Text
    exit: Number | None
    duration_s: Seconds


class Config(TypedDict, total=False):
    """What identifies a point: keys by which points are ordered, grouped and drawn."""

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
    """Of the kernels that `measure` runs; those of imports may have the same keys with other values."""

    threads: Ranks | None
    compute_s_per_byte: Amount
    epsilon: Amount
    delta: Amount
    compute_s: Seconds
    receivers: Receivers
    packing: Packing
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
    """`_OwnConfig` with these keys, which have a value."""
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
    """The keys of the `config` of a record that has a `kernel`, with those that its figures are made of."""
    return _CONFIGS.get(record.kernel, Config)


CONFIG_TYPES = {"config": config_types}


class OfSample(TypedDict, total=False):
    """Further keys of a sample that figures are made of; lists of numbers are checked where they are read."""

    delayed_ranks: list[Rank]
    sent_bytes: Bytes
    messages: Natural
    partitions_sent: Natural


# Of records that may leave out what all points have in common.
ANY_CONFIG_TYPES = {"config": Config}


class Summary(TypedDict, total=False):
    command: list[str] | None
    started: Text
    versions: dict[str, Text] | None
    host: Machine | str | None


class Interface(TypedDict, total=False):
    mtu: Plain
    state: Plain
    rate_mbit: Plain
    rate: Plain
    driver: Plain


class Facts(TypedDict, total=False):
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


def check_header(header: dict[str, Any], where: str) -> None:
    """Raise InputError naming the first key of run.json that has another type or is out of range."""
    check_keys(header, Header, where, "give a folder that `measure` wrote")
    check_date(header.get("started"), where)


def check_launch(launch: dict[str, Any], where: str) -> None:
    """Raise InputError naming the first key of a launch that has another type or is out of range."""
    check_keys(launch, Launch, where, "the file was changed by hand")
    check_date(launch.get("started"), where)


def check_summary(facts: dict[str, Any], where: str) -> None:
    """Raise InputError naming such a key of what is said of a recording as a whole."""
    check_keys(facts, Summary, where, "give a folder that `earlybird record` wrote")
    check_date(facts.get("started"), where)


def check_date(text: str | None, where: str) -> None:
    """Raise InputError for a date of the calendar that no clock in another time zone shows; other text is
    shown as it is."""
    try:
        datetime.fromisoformat(text or "").astimezone(UTC)
    except ValueError:
        return
    except OverflowError:
        raise InputError(
            f"{where}: started is {text!r}, which is no time of the calendar; give one, such as "
            "2026-11-21T02:16:36+00:00"
        ) from None
