"""Runs programs that report case by case under an MPI's mpiexec, past cases that crash or hang."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from earlybird.launch.mpiexec import yielding
from earlybird.machine import hardware
from earlybird.machine.flavours import Flavour
from earlybird.toolchain.build import native_prefix, native_sources

# How many times as long as usual a case may take before it counts as hanging: another worker of pytest, or
# another user, may use the cores, too.
PATIENCE = {"EARLYBIRD_TESTS_PATIENCE": "6"}
# The costs of a slow network, on which pieces of the smallest buffers are worth a message of their own.
PLANS_FROM_64_BYTES = {"EARLYBIRD_COSTS": "intra_node_protocols=0:1e-6:1e-7:1e6"}
# The MPIs under test that have the MPI standard's own ABI next to their own.
STANDARD_ABI = ("mpich", "intel")
# Of every kind of call, what the ABI's numbers could break; docs/tools.md reports a run of all cases.
ABI_CASES = [
    "pready_out_of_order_delivers_every_partition",
    "unequal_partition_counts_deliver_every_byte",
    "waitall_completes_a_mixture_of_requests",
    "testsome_completes_a_mixture_of_requests",
    "waitany_completes_a_mixture_of_requests_one_by_one",
    "the_status_counts_elements_of_the_receivers_type",
    "split_communicators_deliver_and_may_be_freed_after_init",
    "topology_communicators_deliver",
    "nonblocking_duplicates_deliver",
    "attribute_callbacks_run_for_the_users_calls_only",
    "derived_types_deliver_every_byte_and_leave_gaps_alone",
    "a_bad_argument_of_init_calls_the_error_handler",
    "misuse_of_a_request_gives_its_error_class",
    "a_handle_an_address_or_a_size_that_cannot_be_gives_its_error_class",
    "a_null_pointer_is_an_error_and_leaves_a_transfer_as_it_is",
    "every_tag_up_to_tag_ub_delivers",
]


@dataclass(frozen=True)
class Outcome:
    """How a case ended: `ok`, `skipped` or `failed`, and why."""

    status: str
    why: str = ""


def suite_program(flavour: Flavour, name: str = "partitioned_cases") -> Path:
    """A test program in the build for `flavour`."""
    return native_prefix(flavour) / "libexec" / "earlybird" / "tests" / name


def compile_program(flavour: Flavour, name: str, folder: Path, *options: str) -> Path:
    """A program of the suite compiled into `folder` without libearlybird, for the MPI's own calls.

    `options`: further ones of the compiler.
    """
    sources = native_sources() / "tests"
    families = sorted(sources.glob("*_cases.c")) if name == "partitioned_cases" else [sources / f"{name}.c"]
    program = folder / f"{name}-{flavour.name}"
    command = [
        flavour.mpicc,
        *options,
        "-std=gnu11",
        "-O1",
        "-D_GNU_SOURCE",
        f"-I{sources.parent / 'include'}",
    ]
    command += [*families, sources / "case.c", sources / "report.c", "-pthread", "-ldl", "-o", program]
    compiled = subprocess.run(command, env=flavour.environment(), capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr
    return program


def list_cases(program: Path, flavour: Flavour) -> list[str]:
    """The names of all cases, without starting MPI."""
    output = subprocess.run([program, "--list"], env=flavour.environment(), capture_output=True, text=True)
    assert output.returncode == 0, output.stderr
    return output.stdout.split()


def launch_command(flavour: Flavour, num_ranks: int) -> list[str]:
    """mpiexec and its options: ranks are not bound, because their threads share the machine.

    MPICH binds none by default; with this option its mpiexec fails in MPI_Comm_spawn
    (5.0.2: "duplicate setting").
    """
    command = [str(flavour.mpiexec), "-n", str(num_ranks)]
    if flavour.family == "openmpi":
        return [*command, "--map-by", "core:OVERSUBSCRIBE", "--bind-to", "none"]
    return command


def start_environment(flavour: Flavour, num_ranks: int) -> dict[str, str]:
    """Ranks of Intel MPI in shared memory; waiting ranks yield where the cores are fewer."""
    env = flavour.environment()
    if flavour.family == "intel":
        env |= {"I_MPI_PIN": "0"} | ({} if "I_MPI_FABRICS" in env else {"I_MPI_FABRICS": "shm"})
    num_cores = sum(len(cores) for cores in hardware.cores_by_socket())
    return env | (yielding(flavour.family) if num_ranks >= num_cores else {})


def run_ranks(
    flavour: Flavour,
    num_ranks: int,
    command: Sequence[str | Path],
    env: Mapping[str, str] | None = None,
    timeout_s: float = 120,
) -> tuple[int | None, str]:
    """The exit status (None when time ran out) and the whole output; no rank is left running."""
    process = subprocess.Popen(
        [*launch_command(flavour, num_ranks), *map(str, command)],
        env=start_environment(flavour, num_ranks) | PATIENCE | dict(env or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout_s)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        process.terminate()  # mpiexec takes its ranks along
        try:
            output, _ = process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
        return None, output
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def run_cases(
    flavour: Flavour,
    num_ranks: int,
    cases: Sequence[str],
    options: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    program: Path | None = None,
    timeout_s: float = 120,
    max_launches: int = 4,
) -> dict[str, Outcome]:
    """The outcome of each case; after a launch that a case ended, another runs the cases after it."""
    program = program or suite_program(flavour)
    outcomes: dict[str, Outcome] = {}
    left = list(cases)
    for _ in range(max_launches):
        status, output = run_ranks(flavour, num_ranks, [program, *options, *left], env, timeout_s)
        begun = _read(output, outcomes)
        left = [name for name in left if name not in outcomes and name != begun]
        if begun is None and status == 0:
            break
        if begun is not None and begun not in outcomes:
            cause = f"{timeout_s:g} s ran out" if status is None else f"status {status}"
            outcomes[begun] = Outcome("failed", f"{cause}; the end of the output: {output[-1500:]}")
        if not left:
            break
    return outcomes | {name: Outcome("failed", "no launch came to it") for name in left}


def _read(output: str, outcomes: dict[str, Outcome]) -> str | None:
    """Adds the outcomes in the output; returns the case that began and did not end."""
    begun = None
    for line in output.splitlines():
        status, _, rest = line.partition(" ")
        if status == "begin":
            begun = rest
        elif status in ("ok", "failed", "skipped"):
            name, _, why = rest.partition(":")
            name = name.split(" (")[0]
            # Of the lines of several ranks the first is kept.
            outcomes.setdefault(name, Outcome(status, why.strip()))
            begun = None if begun == name else begun
    return begun
