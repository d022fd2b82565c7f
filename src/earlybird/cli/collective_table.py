"""The table of the suite `collective`: times, their ratio to the MPI's own choice, and trees."""

from collections.abc import Mapping, Sequence
from typing import Any

from earlybird.cli.common import note
from earlybird.compare.methods import Ratio, chained_ratio, paired_ratio
from earlybird.compare.trees import MethodProof, prove
from earlybird.data import units
from earlybird.data.collective_algorithms import (
    COMPLETION,
    DEFAULT,
    OPERATIONS,
    REDUCE_LOCAL,
    ROOTED,
    parse_method,
)
from earlybird.data.errors import InputError
from earlybird.data.run import Run, Sample, median_of_launches, rank_medians_of_launches
from earlybird.measure.groups import Group
from earlybird.models.tree_proof import CONTRADICTED, NOT_VERIFIED, PROVEN

KERNEL = "collective"
HEADER = (
    "operation", "mapped by", "P", "size", "algorithm", "completion", "launches from", "to", "mean", "root",
    "over default", "from", "to", "tree", "launches", "state",
)  # fmt: skip
# Algorithms in every launch of an MPI whose algorithm is set at startup.
_COMMON = ("own-binomial", "own-linear")
_LOCAL_METHOD = "MPI_Reduce_local"


def collective_rows(run: Run, samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """A row for each algorithm at each point, ordered by operation, mapping, ranks, size and algorithm."""
    proofs = prove(samples, run.launches())
    by_point: dict[tuple, list[Sample]] = {}
    for sample in samples:
        if sample.quantity in (COMPLETION, REDUCE_LOCAL):
            by_point.setdefault(sample.point(), []).append(sample)
    rows = [_row(same, by_point, proofs) for same in by_point.values()]
    return sorted(rows, key=_order)


def warn_of_contradictions(run: Run, samples: Sequence[Sample]) -> None:
    """Print a warning for every forced algorithm that did not run."""
    for proof in prove(samples, run.launches()).values():
        if contradiction := proof.contradiction():
            note(f"warning: {contradiction}; its times are those of another algorithm")


def _row(samples: Sequence[Sample], by_point: Mapping[tuple, Sequence[Sample]], proofs) -> dict[str, Any]:
    config = samples[0].config
    operation, method = config["operation"], samples[0].method
    medians = [sample.median_s() for sample in samples]
    of_ranks = rank_medians_of_launches(samples)
    rooted = operation in ROOTED
    ratio, through = _over_default(samples, by_point)
    return {
        "kernel": samples[0].kernel,
        "mpi": config["mpi"],
        "operation": operation,
        "map_by": config["map_by"],
        "layout": config["layout"],
        "ranks": config["ranks"],
        "root": config["root"] if rooted else None,
        "size_bytes": config["size_bytes"],
        "datatype": config.get("datatype"),
        "method": method or _LOCAL_METHOD,
        "time_s": median_of_launches(samples),
        "fastest_launch_s": min(medians),
        "slowest_launch_s": max(medians),
        "mean_s": float(of_ranks.mean()),
        "root_s": float(of_ranks[config["root"]]) if rooted else None,
        "over_default": ratio and ratio.value,
        "over_default_low": ratio and ratio.low,
        "over_default_high": ratio and ratio.high,
        "over_default_through": through,
        **_tree_values(proofs, operation, method, config),
        "launches": len(samples),
        "converged": sum(sample.converged for sample in samples),
        "oversubscribed": any(sample.oversubscribed for sample in samples),
    }


def _over_default(
    samples: Sequence[Sample], by_point: Mapping[tuple, Sequence[Sample]]
) -> tuple[Ratio | None, str | None]:
    """Ratio of the time to that of the MPI's choice, from alternating calls; if no launch has both, it is
    chained through an algorithm of ours that is in the launches of both."""
    kernel, quantity, method, config = samples[0].point()
    if method in (None, DEFAULT):
        return None, None
    default = by_point.get((kernel, quantity, DEFAULT, config), ())
    if ratio := paired_ratio(samples, default):
        return ratio, None
    for name in _COMMON:
        common = by_point.get((kernel, quantity, name, config), ())
        if ratio := chained_ratio(samples, common, default):
            return ratio, name
    return None, None


def _tree_values(
    proofs: Mapping[tuple, MethodProof], operation: str, method: str | None, config: Mapping[str, Any]
) -> dict[str, Any]:
    key = (operation, method, config["ranks"], config["map_by"], config["root"])
    if key in proofs:
        result = proofs[key]
        return {
            "proof": result.proof.verdict,
            "tree_asked": result.tree,
            "tree_seen": result.proof.seen,
            "edges_seen": result.proof.edges and [list(edge) for edge in result.proof.edges],
            "proof_ranks": result.ranks,
        }
    others = [proof for proof in proofs.values() if (*proof.key[:2], *proof.key[3:]) == (*key[:2], *key[3:])]
    elsewhere = max(others, key=lambda proof: proof.ranks, default=None)
    return {
        "proof": NOT_VERIFIED,
        "tree_asked": elsewhere and elsewhere.tree,
        "tree_seen": None,
        "edges_seen": None,
        "proof_ranks": elsewhere and elsewhere.ranks,
        "proof_there": elsewhere and elsewhere.proof.verdict,
    }


def _order(row: Mapping[str, Any]) -> tuple:
    operation = row["operation"]
    position = OPERATIONS.index(operation) if operation in OPERATIONS else len(OPERATIONS)
    method = parse_method(row["method"])
    kind = 0 if method.name == DEFAULT else 1 if method.is_forced else 2
    return position, row["map_by"], row["ranks"], row["size_bytes"], kind, method.name, method.segment_bytes


def collective_cells(row: Mapping[str, Any], state: str) -> list[Any]:
    """A line of the table, in the order of HEADER."""
    times = ("time_s", "fastest_launch_s", "slowest_launch_s", "mean_s", "root_s")
    ratios = ("over_default", "over_default_low", "over_default_high")
    return [
        row["operation"],
        row["map_by"],
        row["ranks"],
        "" if row["operation"] == "barrier" else units.format_bytes(row["size_bytes"]),
        row["method"],
        *("" if row[name] is None else units.format_seconds(row[name]) for name in times),
        *("" if row[name] is None else ratio_words(row[name]) for name in ratios),
        _tree_text(row),
        row["launches"],
        state,
    ]


def ratio_words(ratio: float) -> str:
    """Two decimals, or two significant digits below 0.1."""
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def _tree_text(row: Mapping[str, Any]) -> str:
    if row["proof"] == PROVEN:
        return f"{row['tree_asked']}, proven"
    if row["proof"] == CONTRADICTED:
        return f"{row['tree_asked']} contradicted: {row['tree_seen'] or 'another tree'}"
    if row.get("proof_there") in (PROVEN, CONTRADICTED):
        return f"{row['tree_asked']}, {row['proof_there']} at P={row['proof_ranks']}"
    if row["tree_asked"]:
        return f"{row['tree_asked']}, not verified"
    return f"seen: {row['tree_seen']}" if row["tree_seen"] else ""


def collective_remarks(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines to print below the table of `rows`."""
    remarks = [
        "completion: until the last rank is done; mean: over ranks, as the OSU benchmarks report; root: "
        "until the root is done"
    ]
    through = {row["over_default_through"] for row in rows} - {None}
    if through:
        remarks.append(
            "over default: time relative to the MPI's own choice, through "
            f"{' and '.join(sorted(through))}, which is "
            "in the launches of both, because this MPI runs one algorithm per launch"
        )
    elif any(row["over_default"] is not None for row in rows):
        remarks.append(
            "over default: time relative to the MPI's own choice; median of the ratios of alternating "
            "calls in one launch"
        )
    if any(row["proof"] != NOT_VERIFIED or row["tree_seen"] for row in rows):
        remarks.append(
            "tree: each rank in turn enters late with the smallest message; the ranks that finish late "
            "are below "
            "it in the tree (reduce, gather: above it); proven: they are exactly those of the requested tree"
        )
    return remarks


def check_osu(groups: Sequence[Group]) -> None:
    """Raise InputError for several operations, mappings, rank counts or algorithms, which do not fit into one
    column."""
    points = [point for group in groups for point in group.points if point["operation"] != REDUCE_LOCAL]
    columns = {(point["operation"], point["map_by"], point["ranks"]) for point in points}
    methods = {method for group in groups for method in group.methods}
    if len(columns) > 1 or len(methods - {DEFAULT}) > 1:
        raise InputError(
            "--format osu prints one column: measure one --op, one --map-by, one of --ranks and one "
            "--algorithm"
        )


def print_osu(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the mean over ranks in us, as the OSU benchmarks define it, of the one algorithm requested."""
    rows = [row for row in rows if row["operation"] != REDUCE_LOCAL]
    requested = {row["method"] for row in rows} - {DEFAULT} or {DEFAULT}
    print("# Size       Avg Latency(us)")
    for row in rows:
        if row["method"] in requested:
            print(f"{row['size_bytes']:<10d}{row['mean_s'] * 1e6:>18.2f}")
