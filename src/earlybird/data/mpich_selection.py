"""Files that select MPICH's algorithms by ranks, nodes and size, for its `..._TUNING_JSON_FILE` variables.

MPICH has two trees of decisions, one of ch4 for compositions over nodes and one for algorithms. A file
replaces a whole tree, for every collective operation. So the trees inside the library are taken as they are,
and rules are inserted in front of what they decide, for one operation after the other.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from earlybird.data import files, json_text
from earlybird.data.collective_algorithms import REDUCTIONS

Tree = dict[str, Any]

# What MPICH's tree compares sizes with: avg, the buffer or the block of one rank; total, all blocks. Of
# gather and scatter it counts elements in each rank's own arguments, which need not agree: no size is safe.
_SIZES = {
    "bcast": "avg", "reduce": "avg", "allreduce": "avg", "alltoall": "avg", "allgather": "total",
    "barrier": "",
}  # fmt: skip
# The composition of ch4 that leaves all ranks, of one node or several, to one algorithm.
_FLAT = {
    "bcast": "gamma", "reduce": "gamma", "allreduce": "beta", "alltoall": "beta", "allgather": "beta",
    "barrier": "beta",
}  # fmt: skip
_LABEL = "MPIR_CVAR_{}_INTRA_ALGORITHM"
_INTRA = "comm_type=intra"
# The smallest pages of any machine: multiples of larger ones are multiples of these, too.
_PAGE_BYTES = 4096
_LAST_BYTES = (1 << 31) - 1  # MPICH reads the sizes of a file as int
# A parameter that files give, and MPICH 4.0.3 does not know.
_KNOWN_PARAMETER = "recv_pre_posted="


@dataclass(frozen=True)
class SelectionRule:
    """The sizes from `from_bytes` to `to_bytes`, both included, for which `variables` force an algorithm;
    `needs` is its requirement (mpi_algorithms.NEEDS)."""

    from_bytes: int
    to_bytes: int
    variables: Mapping[str, str]
    needs: str | None = None


@dataclass(frozen=True)
class Selection:
    """The decisions of an MPICH: its tree of algorithms, and its tree of compositions (None without ch4)."""

    algorithms: Tree
    compositions: Tree | None

    def with_rules(
        self, operation: str, ranks: int, num_nodes: int, rules: Sequence[SelectionRule]
    ) -> "Selection":
        """Return the same decisions with the rules of one operation; rules of other operations may already be
        included.

        Rules, in order of size, hold for communicators of exactly `ranks` on `num_nodes` nodes; for
        reductions, they apply if the operator is built in and commutative, as only such operators were
        measured.
        """
        if not rules:
            return self
        inserting = partial(_with_rules, operation=operation, ranks=ranks, num_nodes=num_nodes, rules=rules)
        algorithms = inserting(
            self.algorithms, leaves=[_algorithm(operation, rule.variables) for rule in rules]
        )
        flat: list[Tree] = [{_flat(operation): {}} for _ in rules]
        compositions = None if self.compositions is None else inserting(self.compositions, leaves=flat)
        return Selection(algorithms, compositions)

    def files(self) -> dict[str, str]:
        """Return the text of each file by the name of its variable."""
        files = {"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": _text(self.algorithms)}
        if self.compositions is not None:
            files["MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE"] = _text(self.compositions)
        return files


def find_selection(installed: Path) -> Selection | None:
    """Return the trees of the MPICH in the folder `installed`; None if no library there has them."""
    libraries = sorted(path for path in installed.glob("lib*/libmpi.so*") if path.is_file())
    return next((found for one in libraries if (found := read_selection(one)) is not None), None)


def read_selection(library: Path) -> Selection | None:
    """Return the trees inside `library`, a libmpi.so.

    Return None if it contains none, or does not know all the names that files select: MPI_Init of MPICH 4.0.3
    aborts at a name that it does not know.
    """
    content = files.read_bytes(library, "library", memory_per_byte=1)
    found = list(_trees(content))
    algorithms = [one for one in found if "algorithm=MPIR_" in json.dumps(one)]
    compositions = [one for one in found if "composition=MPIDI_" in json.dumps(one)]
    needed = [_KNOWN_PARAMETER, *(map(_flat, _FLAT) if compositions else ())]
    if not algorithms or not all(name.encode() in content for name in needed):
        return None
    return Selection(algorithms[0], compositions[0] if compositions else None)


def _trees(content: bytes) -> Iterator[Tree]:
    """Return the texts in a library that are trees with every operation of _SIZES."""
    for match in re.finditer(rb'\{"collective=[^\0]+', content):
        with suppress(ValueError):
            tree = json_text.parse_json(match.group())
            if all(_INTRA in tree.get(f"collective={one}", {}) for one in _SIZES):
                yield tree


def _flat(operation: str) -> str:
    return f"composition=MPIDI_{operation.capitalize()}_intra_composition_{_FLAT[operation]}"


def is_selectable(operation: str, variables: Mapping[str, str]) -> bool:
    """Return whether a file can select this algorithm. The algorithms of nonblocking operations (`nb`) would
    be selected for the nonblocking calls of the program, too."""
    return operation in _SIZES and variables[_LABEL.format(operation.upper())] != "nb"


def _text(tree: Tree) -> str:
    text = json.dumps(tree, indent=1) + "\n"
    # MPICH maps the file into memory and reads up to a zero byte, which follows unless the last page is full.
    return text if len(text) % _PAGE_BYTES else text + "\n"


def _with_rules(
    tree: Tree,
    operation: str,
    ranks: int,
    num_nodes: int,
    rules: Sequence[SelectionRule],
    leaves: Sequence[Tree],
) -> Tree:
    key = f"collective={operation}"
    usual = tree[key][_INTRA]
    inserted = _of_sizes(operation, ranks, rules, leaves, usual)
    placed = _of_nodes(ranks, num_nodes, inserted, usual)
    of_ranks = {f"comm_size<={ranks - 1}": usual, f"comm_size<={ranks}": placed, "comm_size=any": usual}
    return {**tree, key: {**tree[key], _INTRA: of_ranks}}


def _of_nodes(ranks: int, num_nodes: int, inserted: Tree, usual: Tree) -> Tree:
    if num_nodes == 1:
        return {"comm_size=node_comm_size": inserted, "comm_size=any": usual}
    on_each = -(-ranks // num_nodes)
    fewer = {f"comm_avg_ppn<={on_each - 1}": usual} if on_each > 1 else {}
    return {
        "comm_size=node_comm_size": usual, **fewer, f"comm_avg_ppn<={on_each}": inserted,
        "comm_size=any": usual,
    }  # fmt: skip


def _of_sizes(
    operation: str, ranks: int, rules: Sequence[SelectionRule], leaves: Sequence[Tree], usual: Tree
) -> Tree:
    kind = _SIZES[operation]
    guarded = [
        _guarded(operation, ranks, rule.needs, leaf, usual) for rule, leaf in zip(rules, leaves, strict=True)
    ]
    if not kind:
        return guarded[0]
    blocks = ranks if kind == "total" else 1
    found: Tree = {}
    covered_to = -1
    for rule, leaf in zip(rules, guarded, strict=True):
        if rule.from_bytes * blocks > _LAST_BYTES:
            break
        if rule.from_bytes > covered_to + 1:
            found[f"{kind}_msg_size<={rule.from_bytes * blocks - 1}"] = usual
        found[f"{kind}_msg_size<={min(rule.to_bytes * blocks, _LAST_BYTES)}"] = leaf
        covered_to = rule.to_bytes
    return found | {f"{kind}_msg_size=any": usual}


def _guarded(operation: str, ranks: int, needs: str | None, leaf: Tree, usual: Tree) -> Tree:
    """Return `leaf`, restricted to calls that are like those measured and meet the algorithm's
    requirement."""
    if needs in ("halves", "each"):
        too_few = "count<pow2" if needs == "halves" else f"count<={ranks - 1}"
        leaf = {too_few: usual, "count=any": leaf}
    if operation in REDUCTIONS:
        built_in = {"is_op_built_in=yes": leaf, "is_op_built_in=no": usual}
        return {"is_commutative=yes": built_in, "is_commutative=no": usual}
    if operation == "alltoall":
        return {"is_sendbuf_inplace=yes": usual, "is_sendbuf_inplace=no": leaf}
    return leaf


def _algorithm(operation: str, variables: Mapping[str, str]) -> Tree:
    """Return the leaf of an algorithm. MPICH does not initialise parameters that a file leaves out, so all
    are given: parameters that no variable forces have MPICH's default."""
    label = variables[_LABEL.format(operation.upper())]
    of_tree = {
        "tree_type": variables.get("MPIR_CVAR_BCAST_TREE_TYPE", "kary"),
        "k": variables.get("MPIR_CVAR_BCAST_TREE_KVAL", "2"),
        "is_non_blocking": "1",
    }
    parameters: Mapping[str, str] = {}
    if label == "tree":
        topology = ("overhead", "diff_groups", "diff_switches", "same_switches")
        parameters = of_tree | {f"topo_{name}": "0" for name in topology}
    elif label == "pipelined_tree":
        chunk = variables["MPIR_CVAR_BCAST_TREE_PIPELINE_CHUNK_SIZE"]
        parameters = of_tree | {"chunk_size": chunk, "recv_pre_posted": "0"}
    elif operation == "barrier":
        parameters = {"k": "2"}
    name = f"algorithm=MPIR_{operation.capitalize()}_intra_{label}"
    return {name: {f"{key}={value}": {} for key, value in parameters.items()}}
