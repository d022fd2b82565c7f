"""Check from the proof samples of a run whether forced collective algorithms really ran."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from earlybird.data.collective_algorithms import DOWNWARD, PROOF, ROOTED, family_of, parse_method, tree_of
from earlybird.data.errors import InputError
from earlybird.data.results import Result
from earlybird.data.run import Sample
from earlybird.models.tree_proof import CONTRADICTED, NOT_VERIFIED, PROVEN, TreeProof, judge_tree, late_ranks
from earlybird.models.trees import TREES

TREE_VERDICTS = (PROVEN, CONTRADICTED)
# operation, method, ranks, map_by, root
Key = tuple[str, str, int, str, int]


@dataclass(frozen=True)
class MethodProof:
    """The observed tree of `method` of `operation` with `ranks` ranks, mapped by `map_by`, which should run
    along `tree`."""

    operation: str
    method: str
    ranks: int
    map_by: str
    root: int
    tree: str | None
    proof: TreeProof

    @property
    def key(self) -> Key:
        """The key that it shares with the samples of its times."""
        return self.operation, self.method, self.ranks, self.map_by, self.root

    def contradiction(self) -> str | None:
        """A sentence if another tree ran than the requested one."""
        if self.proof.verdict != CONTRADICTED:
            return None
        seen = "along " + self.proof.seen if self.proof.seen in TREES else self.proof.seen
        edges = self.proof.edges
        if seen is None and edges is not None:
            seen = "along " + " ".join(f"{parent}->{child}" for parent, child in edges)
        return (
            f"{self.method} of {self.operation} among {self.ranks} ranks is not what ran: it should "
            f"run along the tree {self.tree} but ran {seen or 'differently'}"
        )


def prove(samples: Iterable[Sample], launches: Iterable[Mapping[str, Any]]) -> dict[Key, MethodProof]:
    """Proofs by `MethodProof.key`; if a method was tried several times, the last conclusive one counts.

    Parameters
    ----------
    samples : of any quantity and kernel; only those of quantity `delayed_completion` are used.
    launches : launch records, which give the MPI of each sample's `launch`.
    """
    families = {launch["id"]: family_of(launch) for launch in launches}
    found: dict[Key, MethodProof] = {}
    for sample in samples:
        if sample.quantity != PROOF or sample.config["operation"] not in ROOTED:
            continue
        one = _prove(sample, families.get(sample.launch))
        if one.proof.verdict != NOT_VERIFIED or one.key not in found:
            found[one.key] = one
    return found


def with_trees(results: Iterable[Result], proofs: Mapping[Key, MethodProof]) -> list[Result]:
    """The results, those of collectives with what is known of the tree of their algorithm: `proof`,
    `tree_asked`, `tree_seen`, `edges_seen` and `proof_ranks`, the number of ranks of that observation."""
    found = list(proofs.values())
    return [
        replace(result, figures={**result.figures, **_tree_figures(result, found)})
        if result.kernel == "collective"
        else result
        for result in results
    ]


def _tree_figures(result: Result, proofs: Sequence[MethodProof]) -> dict[str, Any]:
    config = result.config
    alike = [
        proof
        for proof in proofs
        if (proof.operation, proof.method, proof.map_by, proof.root)
        == (config["operation"], result.method, config["map_by"], config["root"])
    ]
    here = next((proof for proof in alike if proof.ranks == config["ranks"]), None)
    known = here or max(alike, key=lambda proof: proof.ranks, default=None)
    figures: dict[str, Any] = {
        "proof": here.proof.verdict if here else NOT_VERIFIED,
        "tree_asked": known and known.tree,
        "tree_seen": here and here.proof.seen,
        "edges_seen": here and here.proof.edges and [list(edge) for edge in here.proof.edges],
        "proof_ranks": known and known.ranks,
    }
    return figures if here else figures | {"proof_there": known and known.proof.verdict}


def _prove(sample: Sample, family: str | None) -> MethodProof:
    config = sample.config
    operation, root = config["operation"], config["root"]
    delayed = np.array(sample.extra.get("delayed_ranks", ()), dtype=int)
    times_s = sample.rank_times_s
    method = sample.method
    if method is None:
        raise InputError(f"a sample {PROOF} names no method; the file was changed by hand")
    if times_s is None or delayed.shape != (len(times_s),) or not (delayed >= 0).all():
        raise InputError(
            f"a sample {PROOF} of {method} does not record which ranks were delayed; the file was "
            "changed by hand"
        )
    tree = tree_of(family, operation, parse_method(method).name)
    late = late_ranks(times_s, delayed, config["delay_s"])
    proof = judge_tree(late, delayed, tree, root, upward=operation not in DOWNWARD)
    return MethodProof(operation, method, config["ranks"], config["map_by"], root, tree, proof)
