"""Orders of ranks that put those that exchange many bytes next to each other, by scipy's algorithms."""

import numpy as np

MAX_CLUSTERED = 300  # ranks; clustering more takes seconds
HEAVY = 0.9  # of all bytes: the pairs that count among more ranks


def community_order(src: np.ndarray, dst: np.ndarray, weight: np.ndarray, num_ranks: int) -> np.ndarray:
    """Return the ranks 0..num_ranks-1 in an order in which groups that exchange much are contiguous.

    The order is that of the leaves of hierarchical clustering with single linkage, optimally ordered
    (Bar-Joseph et al. 2001); the distance of two ranks falls with the logarithm of their bytes. Above
    MAX_CLUSTERED ranks, it is the reverse Cuthill-McKee order (Cuthill and McKee 1969) of the connected
    components of the heaviest pairs, which carry the share HEAVY of all bytes.

    Parameters
    ----------
    src, dst, weight : arrays of shape (M,), of pairs; weights are not negative. Both directions add up.
    """
    is_other = src != dst
    src, dst = src[is_other], dst[is_other]
    weight = weight[is_other].astype(np.float64) + 1  # messages of 0 bytes connect, too
    if num_ranks < 3 or not len(src):
        return np.arange(num_ranks)
    order = _clustered if num_ranks <= MAX_CLUSTERED else _by_components
    return order(src, dst, weight, num_ranks)


def node_order(nodes: np.ndarray) -> np.ndarray:
    """Return the ranks sorted by the node of each, an array of numbers of shape (P,); ranks of a node keep
    their order.
    """
    return np.argsort(nodes, kind="stable")


def _clustered(src: np.ndarray, dst: np.ndarray, weight: np.ndarray, num_ranks: int) -> np.ndarray:
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    exchanged = np.zeros((num_ranks, num_ranks))
    np.add.at(exchanged, (src, dst), weight)
    near = np.log1p(exchanged + exchanged.T)
    far = near.max() - near
    np.fill_diagonal(far, 0)
    tree = linkage(squareform(far, checks=False), "single", optimal_ordering=True)
    order = leaves_list(tree).astype(np.int64)
    return order if order[0] < order[-1] else order[::-1]


def _by_components(src: np.ndarray, dst: np.ndarray, weight: np.ndarray, num_ranks: int) -> np.ndarray:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

    heaviest = np.sort(weight)[::-1]
    total = np.cumsum(heaviest)
    kept = weight >= heaviest[np.searchsorted(total, HEAVY * total[-1])]
    half = csr_array((weight[kept], (src[kept], dst[kept])), shape=(num_ranks, num_ranks))
    graph = csr_array(half + half.T)
    order = np.asarray(reverse_cuthill_mckee(graph, symmetric_mode=True), dtype=np.int64)
    _, component = connected_components(graph, directed=False)
    return order[np.argsort(component[order], kind="stable")]
