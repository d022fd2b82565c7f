"""Which launcher and which MPI a command's options mean."""

import os

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.layout import LEVELS
from earlybird.data.profile import Profile, load_profile
from earlybird.launch.launcher import Launcher, Request
from earlybird.launch.local import MpiexecLauncher, SrunLauncher, parse_hosts
from earlybird.launch.synthetic import SyntheticLauncher
from earlybird.machine import flavours, hardware
from earlybird.measure.suites import Place
from earlybird.toolchain.build import is_built, require_built


def choose_flavour(name: str | None) -> flavours.Flavour:
    """The flavour called `name`, or the first one that is built."""
    if name is not None:
        return flavours.find_flavour(name)
    for flavour in flavours.present_flavours():
        if is_built(flavour):
            return flavour
    raise InputError(
        "no MPI is built yet; run `earlybird build --mpi mpich` (or openmpi, intel, system) first, or name "
        "one that was built by its path with --mpi /path/to/mpicc"
    )


def _built_flavour(name: str | None) -> flavours.Flavour:
    flavour = choose_flavour(name)
    require_built(flavour)
    return flavour


def make_launcher(text: str, mpi: str | None, hosts: str | None, seed: int) -> tuple[Launcher, Place]:
    """From `--launcher`, `--mpi`, `--hosts`: who starts ranks, and what can be reached that way."""
    kind, _, argument = text.partition(":")
    if hosts is not None and text != "local":
        raise InputError(f"--hosts goes with mpiexec and the launcher is {text!r}; leave one of them out")
    if kind == "synthetic" and argument:
        profile = load_profile(argument)
        return SyntheticLauncher(expected_times(profile), seed), _pretended_place(profile)
    if text == "local":
        flavour = _built_flavour(mpi)
        names = parse_hosts(hosts) if hosts is not None else ()
        return MpiexecLauncher(flavour, names), _place(max(len(names), 1))
    if text == "srun":
        return SrunLauncher(_built_flavour(mpi)), _place(int(os.environ.get("SLURM_NNODES", "1")))
    if kind == "cluster":
        raise InputError(
            "virtual clusters are not built into this version; use --launcher local, srun or --hosts"
        )
    raise InputError(f"--launcher is {text!r}; give local, srun or synthetic:PROFILE.json")


def expected_times(profile: Profile):
    """Seconds of every rank that `profile` stands for, at one point of a kernel."""
    from earlybird.predict.exchange import predict_exchange

    def times_s(kernel: str, point, request: Request) -> np.ndarray:
        if kernel == "exchange":
            return predict_exchange(request.pattern, request.layout, profile).time_s
        level = profile.level(point["level"])
        size_bytes = point["size_bytes"]
        protocol = level.protocols[int(level.protocol_index(np.array([size_bytes]))[0])]
        competitors = point.get("competitors", 1)
        counts, bandwidth = protocol.bandwidth_table()
        shared = float(np.interp(competitors, counts, bandwidth))
        return np.array([protocol.latency_s + competitors * size_bytes / shared])

    return times_s


def _place(nodes: int) -> Place:
    cores = hardware.cores_by_socket()
    return Place.of(min(len(socket) for socket in cores), len(cores), nodes)


def _pretended_place(profile: Profile) -> Place:
    def largest(level: str) -> int:
        return max(max(protocol.bandwidth_bytes_per_s) for protocol in profile.levels[level].protocols)

    return Place({level: largest(level) for level in LEVELS if level in profile.levels})
