"""Check from the verification samples of a run whether forced collective algorithms really ran."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from earlybird.data.collective_algorithms import (
    DOWNWARD,
    ROOTED,
    VERIFICATION,
    family_of,
    parse_method,
    tree_of,
)
from earlybird.data.errors import InputError, Unknown
from earlybird.data.kernels import COLLECTIVE
from earlybird.data.results import Result
from earlybird.data.run import Sample
from earlybird.models.tree_verification import (
    CONFIRMED,
    CONTRADICTED,
    NOT_VERIFIED,
    TreeVerification,
    judge_tree,
    late_ranks,
)
from earlybird.models.trees import TREES

TREE_VERDICTS = (CONFIRMED, CONTRADICTED)
# operation, method, ranks, map_by, root
Key = tuple[str, str, int, str, int]


@dataclass(frozen=True)
class MethodVerification:
    """The observed tree of `method` of `operation` with `ranks` ranks, mapped by `map_by`, which should run
    along `tree`."""

    operation: str
    method: str
    ranks: int
    map_by: str
    root: int
    tree: str | None
    verification: TreeVerification

    @property
    def key(self) -> Key:
        """The key of the samples with the times of the method."""
        return self.operation, self.method, self.ranks, self.map_by, self.root

    def contradiction(self) -> str | None:
        """Return a sentence if another tree ran than the requested one, else None."""
        if self.verification.verdict != CONTRADICTED:
            return None
        seen = (
            "along " + self.verification.seen if self.verification.seen in TREES else self.verification.seen
        )
        edges = self.verification.edges
        if seen is None and edges is not None:
            seen = "along " + " ".join(f"{parent}->{child}" for parent, child in edges)
        return (
            f"{self.method} of {self.operation} among {self.ranks} ranks is not what ran: it should "
            f"run along the tree {self.tree} but ran {seen or 'differently'}"
        )


def verify(samples: Iterable[Sample], launches: Iterable[Mapping[str, Any]]) -> dict[Key, MethodVerification]:
    """Return the verifications by `MethodVerification.key`; the last conclusive one of a method counts.

    Parameters
    ----------
    samples : samples of any quantity and kernel; only those of quantity `delayed_completion` are used.
    launches : launch records, which give the MPI of each sample's `launch`.
    """
    families = {launch.get("id"): family_of(launch) for launch in launches}
    found: dict[Key, MethodVerification] = {}
    for sample in samples:
        if sample.quantity != VERIFICATION or sample.config["operation"] not in ROOTED:
            continue
        try:
            one = _verify(sample, families.get(sample.launch))
        except Unknown:  # a point without ranks or delay shows no tree
            continue
        if one.verification.verdict != NOT_VERIFIED or one.key not in found:
            found[one.key] = one
    return found


def with_trees(results: Iterable[Result], verifications: Mapping[Key, MethodVerification]) -> list[Result]:
    """Return the results, with the tree of the algorithm of each collective, as far as it is known:
    `verification`, `tree_asked`, `tree_seen`, `edges_seen` and `verification_ranks`, the ranks of that
    observation.
    """
    found = list(verifications.values())
    return [
        replace(result, figures={**result.figures, **_tree_figures(result, found)})
        if result.kernel == COLLECTIVE.name
        else result
        for result in results
    ]


def _tree_figures(result: Result, verifications: Sequence[MethodVerification]) -> dict[str, Any]:
    config = result.config
    alike = [
        verification
        for verification in verifications
        if (verification.operation, verification.method, verification.map_by, verification.root)
        == (config["operation"], result.method, config["map_by"], config["root"])
    ]
    here = next((verification for verification in alike if verification.ranks == config.get("ranks")), None)
    known = here or max(alike, key=lambda verification: verification.ranks, default=None)
    figures: dict[str, Any] = {
        "verification": here.verification.verdict if here else NOT_VERIFIED,
        "tree_asked": known and known.tree,
        "tree_seen": here and here.verification.seen,
        "edges_seen": here and here.verification.edges and [list(edge) for edge in here.verification.edges],
        "verification_ranks": known and known.ranks,
    }
    return figures if here else figures | {"verification_there": known and known.verification.verdict}


def _verify(sample: Sample, family: str | None) -> MethodVerification:
    config = sample.config
    operation, root = config["operation"], config["root"]
    delayed = np.array(sample.extra.get("delayed_ranks", ()), dtype=int)
    times_s = sample.rank_times_s
    method = sample.method
    if method is None:
        raise InputError(f"a sample {VERIFICATION} names no method; the file was changed by hand")
    if (
        times_s is None
        or delayed.shape != (len(times_s),)
        or not ((delayed >= 0) & (delayed < times_s.shape[1])).all()
    ):
        raise InputError(
            f"a sample {VERIFICATION} of {method} does not record which ranks were delayed; the file was "
            "changed by hand"
        )
    tree = tree_of(family, operation, parse_method(method).name)
    late = late_ranks(times_s, delayed, config["delay_s"])
    verification = judge_tree(late, delayed, tree, root, upward=operation not in DOWNWARD)
    return MethodVerification(operation, method, config["ranks"], config["map_by"], root, tree, verification)
