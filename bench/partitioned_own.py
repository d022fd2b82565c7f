"""Do the MPIs' own partitioned calls hold what the cases of native/tests hold libearlybird to?

The cases are compiled without libearlybird; each has a launch of two ranks of its own, which hangs or
crashes alone.
"""

import re
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from bench.commands import built_mpis, say
from earlybird.machine.flavours import Flavour, find_flavour
from earlybird.present.render.terminal import print_rows
from earlybird.toolchain.build import features, native_sources
from tests.partitioned import Outcome, compile_program, run_cases, run_ranks

# The others ask for messages of libearlybird, and for more memory than many machines have.
FAMILIES = (
    "order",
    "type",
    "communicator",
    "matching",
    "mixture",
    "progress",
    "error",
    "thread",
)
STRESS = "random_transfers_deliver_every_byte"
TRANSFERS = 2000
LIMIT_S = 60
# What a failure is called, by what the case says of it; the first that fits.
KINDS = {
    "wrong data": r"is wrong\b|in place of",
    "crashes": r"crashes|aborts|^status (?!None)",
    "hangs": r"hangs|ran out",
}
OTHER = "another answer"


def main() -> int:
    """Run all of it and print a table of the families and the failures of each MPI."""
    found: dict[str, dict[str, dict[str, Outcome]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for mpi in built_mpis():
            flavour = find_flavour(mpi)
            if not features(flavour)["has_partitioned"]:
                continue
            program = compile_program(flavour, "partitioned_cases", Path(folder))
            found[mpi] = {}
            for family, cases in _families().items():
                found[mpi][family] = _run(flavour, cases, program)
                say(f"{mpi}, {family}: {_share(found[mpi][family])}")
            program = compile_program(flavour, "partitioned_stress", Path(folder))
            found[mpi]["stress"] = {STRESS: _stress(flavour, program)}
    print("\nCases that the MPIs' own partitioned calls pass")
    rows = [
        [family, *(_share(of_mpi[family]) for of_mpi in found.values())] for family in (*FAMILIES, "stress")
    ]
    print_rows(["family", *found], rows)
    for mpi, of_mpi in found.items():
        _report(mpi, of_mpi)
    return 0


def _families() -> dict[str, list[str]]:
    """The names of the cases of each family."""
    sources = native_sources() / "tests"
    return {
        family: re.findall(r'^    \{"(\w+)",', (sources / f"{family}_cases.c").read_text(), re.MULTILINE)
        for family in FAMILIES
    }


def _run(flavour: Flavour, cases: list[str], program: Path) -> dict[str, Outcome]:
    outcomes = {}
    for case in cases:
        output = run_cases(flavour, 2, [case], program=program, timeout_s=LIMIT_S, max_launches=1)
        outcomes[case] = output[case]
        ended = output.get("finalize_returns", Outcome("failed", "crashes"))
        if output[case].status != "failed" and ended.status != "ok":
            outcomes[case] = Outcome("failed", f"MPI_Finalize: {ended.why}")
    return outcomes


def _stress(flavour: Flavour, program: Path) -> Outcome:
    arguments = [program, "--transfers", TRANSFERS, "--seconds", LIMIT_S]
    status, output = run_ranks(flavour, 2, arguments, timeout_s=LIMIT_S + 20)
    if status == 0:
        return Outcome("ok")
    why = re.search(rf"^failed {STRESS}:? (.*)", output, re.MULTILINE)
    return Outcome("failed", why[1] if why else f"status {status}: {output[-300:]}")


def _share(outcomes: dict[str, Outcome]) -> str:
    count = Counter(outcome.status for outcome in outcomes.values())
    return f"{count['ok']} of {count['ok'] + count['failed']}"


def _kind(outcome: Outcome) -> str:
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, outcome.why)), OTHER)


def _report(mpi: str, found: dict[str, dict[str, Outcome]]) -> None:
    by_kind = defaultdict(list)
    for outcomes in found.values():
        for case, outcome in outcomes.items():
            if outcome.status == "failed":
                by_kind[_kind(outcome)].append((case, outcome.why))
    for kind in (*KINDS, OTHER):
        if by_kind[kind]:
            print(f"\n{mpi}, {kind}")
        for case, why in by_kind[kind]:
            print(f"  {case}" if kind in ("hangs", "crashes") else f"  {case}: {' '.join(why.split())[:150]}")
