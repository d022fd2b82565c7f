"""Published times of collectives: the regressions of Insaghi for their own machine."""

from dataclasses import dataclass

import numpy as np

from earlybird.data.insaghi import Regression, load_insaghi
from earlybird.models.collective import by_node_us, by_socket_us, size_grid_us


@dataclass(frozen=True)
class Reference:
    """The prediction of a regression of Insaghi (paper), for its two nodes of 128 cores."""

    form: str
    table: str
    algorithm: str
    map_by: str
    time_s: float


def references(operation: str, ranks: int, size_bytes: int, map_by: str) -> list[Reference]:
    """Return the predictions of Insaghi's regressions for its machine; forms 1 and 2 cover one byte only."""
    mapping = published_mapping(map_by)
    insaghi = load_insaghi()
    return [
        Reference(
            f"insaghi-{one.form}",
            one.table,
            one.algorithm,
            one.map_by,
            float(published_us(one, np.array(ranks), size_bytes, insaghi.break_ranks)) / 1e6,
        )
        for one in insaghi.regressions
        if one.operation == operation and one.map_by == mapping and (one.form == 3 or size_bytes == 1)
    ]


def published_mapping(map_by: str) -> str:
    """Return the nearest mapping of Insaghi's paper: by socket it fills a node first, like --map-by core."""
    return "node" if map_by == "node" else "socket"


def published_us(one: Regression, ranks: np.ndarray, size_bytes: int, break_ranks: int) -> np.ndarray:
    """Return microseconds by ranks; `break_ranks` is the number of ranks on the first node of Insaghi's
    machine.
    """
    if one.form == 3:
        return size_grid_us(ranks, size_bytes, *one.estimates)
    if one.form == 2:
        return by_node_us(ranks, one.estimates, logarithm=one.logarithm)
    return by_socket_us(ranks, break_ranks, one.estimates, logarithm=one.logarithm)
