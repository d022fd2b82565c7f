"""What collectives show, as sentences: the best algorithms, how to use them, and what was verified."""

import math
import re
from collections import Counter
from collections.abc import Sequence

from earlybird.data import labels
from earlybird.data.collective_algorithms import (
    DEFAULT,
    PERSISTENT,
    UNMODELLED,
    mpi_algorithms,
    parse_method,
    persistent_algorithms,
)
from earlybird.data.collective_configuration import setting
from earlybird.data.shell_commands import quoted
from earlybird.data.units import format_bytes
from earlybird.present import commands
from earlybird.present.core.parts import Answer, grouped
from earlybird.present.core.points import Point
from earlybird.present.core.text import crowd, finding, method_answer, time_text
from earlybird.present.material import Material, Verification
from earlybird.present.subjects.collectives.view import Collective, mpi_point

NOUN, NOUN_OF_MPI = "algorithm", "algorithm of the MPI"
_SLOTS = re.compile(r"[0-9]+x[0-9]+x[0-9]+")
_MAX_LISTED = 4  # pairs of operation and MPI in the answer
_MAX_CONTRADICTED = 5
_NOT_SELECTABLE = "the MPI cannot select it"


def sentences(measured: Sequence[Collective]) -> list[str]:
    """Return a sentence for each operation and MPI."""
    chosen = main_mappings(measured)
    num_left = len(chosen) - _MAX_LISTED
    more = f"{labels.counted(num_left, 'more pair')} of operation and MPI: see below."
    return [*map(_sentence, chosen[:_MAX_LISTED]), *([more] if num_left > 0 else [])]


def main_mappings(measured: Sequence[Collective]) -> list[Collective]:
    """Return the mapping with the most ranks of each operation and MPI."""
    groups = grouped(measured, lambda collective: (collective.operation_text, collective.label))
    return [max(group, key=lambda collective: collective.ranks()[-1]) for group in groups.values()]


def best_text(point: Point) -> str:
    """Return `binomial tree is the fastest algorithm (12 us, speed-up 1.30 over the MPI's default)`."""
    method, clause = finding(point, NOUN, DEFAULT)
    text = f"{clause} ({time_text(point, method)})"
    if not labels.is_own(method):
        return text
    of_mpi = mpi_point(point)
    text += f", for comparison: {_NOT_SELECTABLE}"
    if not of_mpi.results:
        return text
    best, clause = finding(of_mpi, NOUN_OF_MPI, DEFAULT)
    return f"{text}; {clause} ({time_text(of_mpi, best)})"


def collective_answer(collective: Collective, material: Material) -> Answer:
    """Return the best of the MPI's algorithms at the largest size among the most ranks."""
    point = collective.of_ranks(collective.ranks()[-1])[-1]
    ranks = labels.counted(point.ranks, "rank")
    what = f"{labels.capital(collective.setting_text)}, {format_bytes(point.size_bytes)}, {ranks}"
    of_mpi = mpi_point(point)
    if not of_mpi.results:
        return method_answer(what, point, NOUN, DEFAULT, "", f", for comparison; {_NOT_SELECTABLE}")
    own = point.best(DEFAULT)
    more = f". For comparison: {_own_text(point, own)}" if labels.is_own(own) else ""
    do = (
        _set(collective, of_mpi)
        if collective.operation in UNMODELLED
        else _advise(collective, point, material)
    )
    return method_answer(what, of_mpi, NOUN_OF_MPI, DEFAULT, do, more)


def _own_text(point: Point, own: str) -> str:
    """Return `our binomial tree (Earlybird's) takes 4.89 us; the MPI cannot select it`."""
    return f"{labels.method(own)} (Earlybird's) takes {time_text(point, own)}; {_NOT_SELECTABLE}"


def _set(collective: Collective, point: Point) -> str:
    """Return how to use the best of the MPI's algorithms where no model advises, so at this size only."""
    method = point.best(DEFAULT)
    family = collective.run.family(collective.mpi)
    if family is None or parse_method(method).name not in (
        PERSISTENT,
        *mpi_algorithms(family, collective.operation),
        *persistent_algorithms(family, collective.operation),
    ):
        return f"use {method}; see the manual of this MPI"
    text = setting(family, collective.operation, method, point.ranks)
    return text if parse_method(method).is_persistent else f"set `{text}`"


def _advise(collective: Collective, point: Point, material: Material) -> str:
    """Return how to find the setting of the MPI's best algorithm at a point."""
    config, ranks = point.config, point.ranks
    layout = str(config.get("layout", ""))
    slots = [int(count) for count in layout.split("x")] if _SLOTS.fullmatch(layout) else []
    options = [
        f"earlybird advise collective --op {quoted(collective.operation)} --ranks {ranks}",
        f"--size {commands.size(point.size_bytes)}",
        f"--map-by {quoted(collective.map_by)}" if collective.map_by else "",
        f"--layout {layout}" if slots and math.prod(slots) == ranks else "",
        f"--root {quoted(str(config['root']))}" if config.get("root") else "",
        "--mpi-only",
    ]
    return commands.advice(
        material,
        collective.run,
        collective.mpi,
        " ".join(filter(None, options)),
        "collectives.json",
        lambda what: what.get("operation") == collective.operation and "algorithm" in what,
    )


def _sentence(collective: Collective) -> str:
    """Return the best algorithm at the smallest and at the largest size among the most ranks."""
    points = collective.of_ranks(collective.ranks()[-1])
    ends = [points[0], points[-1]] if len(points) > 1 else points
    texts = [f"at {format_bytes(point.size_bytes)}, {best_text(point)}" for point in ends]
    mapped = f" {text}" if (text := labels.mapped_by(collective.map_by)) else ""
    what = f"{labels.capital(collective.operation_text)} with {collective.label}"
    ranks = labels.counted(points[0].ranks, "rank")
    crowded = f" ({crowd('ranks')})" if any(point.oversubscribed for point in ends) else ""
    return f"{what} among {ranks}{mapped}: {'; '.join(texts)}{crowded}."


def verification_lines(verifications: Sequence[Verification]) -> list[str]:
    """Return how many of the forced algorithms were verified."""
    if not verifications:
        return []
    counts = Counter(verification.verdict for verification in verifications)
    verdicts = [verdict for verdict in ("confirmed", "contradicted", "not verified") if counts[verdict]]
    counted = labels.listed([f"{counts[verdict]} {verdict}" for verdict in verdicts])
    what = labels.counted(len(verifications), "check")
    return [f"Algorithms were verified by delaying ranks: of {what}, {counted}."]


def contradiction_warnings(verifications: Sequence[Verification]) -> list[str]:
    """Return which of the forced algorithms did not run."""
    contradicted = [
        f"{labels.method(check.method)} ({labels.operation(check.operation)}, {labels.flavour(check.mpi)}, "
        f"{labels.counted(check.ranks, 'rank')})"
        for check in verifications
        if check.verdict == "contradicted"
    ]
    names = labels.listed_briefly(list(dict.fromkeys(contradicted)), _MAX_CONTRADICTED)
    return [f"Do not use the times of {names}: another algorithm ran."] if contradicted else []
