"""Orders of ranks that put those that exchange many bytes next to each other, by scipy's graph algorithms."""

from typing import Any

import numpy as np

MAX_SPECTRAL = 500  # ranks; eigenvectors of larger dense matrices take seconds
HEAVY = 0.9  # of all bytes: the pairs that count in a larger graph


def community_order(src: np.ndarray, dst: np.ndarray, weight: np.ndarray, num_ranks: int) -> np.ndarray:
    """The ranks 0..num_ranks-1 in an order in which groups that exchange much are contiguous.

    Each connected component is contiguous, the one with the lowest rank first. Inside, the order is that of
    the Fiedler vector of the normalized Laplacian (Fiedler 1973); above MAX_SPECTRAL ranks, the reverse
    Cuthill-McKee order (Cuthill and McKee 1969) of the heaviest pairs, which carry the share HEAVY of all
    bytes.

    Parameters
    ----------
    src, dst, weight : arrays of shape (M,), of pairs; weights are not negative. Both directions add up.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

    weight = np.maximum(weight.astype(np.float64), 1e-9)  # messages of 0 bytes connect, too
    is_other = src != dst
    src, dst, weight = src[is_other], dst[is_other], weight[is_other]
    if num_ranks > MAX_SPECTRAL:
        kept = _heaviest(weight)
        src, dst, weight = src[kept], dst[kept], weight[kept]
    half = csr_array((weight, (src, dst)), shape=(num_ranks, num_ranks))
    graph = csr_array(half + half.T)
    if num_ranks > MAX_SPECTRAL:
        order = np.asarray(reverse_cuthill_mckee(graph, symmetric_mode=True), dtype=np.int64)
    else:
        order = np.arange(num_ranks)
    _, component = connected_components(graph, directed=False)
    parts = []
    for number in np.unique(component):  # numbered by their lowest ranks
        ranks = order[component[order] == number]
        parts.append(ranks if num_ranks > MAX_SPECTRAL else _spectral(graph[ranks][:, ranks], ranks))
    return np.concatenate(parts) if parts else order


def node_order(nodes: np.ndarray) -> np.ndarray:
    """The ranks by the node of each, an array of numbers of shape (P,); ranks of a node in their order."""
    return np.argsort(nodes, kind="stable")


def _heaviest(weight: np.ndarray) -> np.ndarray:
    """The indices of the fewest pairs with at least the share HEAVY of all bytes."""
    order = np.argsort(-weight, kind="stable")
    total = np.cumsum(weight[order])
    return order[: 1 + int(np.searchsorted(total, HEAVY * total[-1]))] if len(total) else order


def _spectral(graph: Any, ranks: np.ndarray) -> np.ndarray:
    """The ranks of one component by their entry in the Fiedler vector."""
    from scipy.linalg import eigh
    from scipy.sparse.csgraph import laplacian

    if len(ranks) < 3:
        return ranks
    matrix = laplacian(graph, normed=True).toarray()
    _, vectors = eigh(matrix, subset_by_index=[1, 1])
    # Rounded: ranks that are alike stay in their order.
    place = np.round(vectors[:, 0], 9)
    place *= -1 if place[0] > place[-1] else 1
    return ranks[np.argsort(place, kind="stable")]
