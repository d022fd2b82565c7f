"""The chapter on collectives: the fastest algorithms, model errors, and verified algorithms."""

import math
import re
from collections import Counter
from collections.abc import Sequence

from earlybird.data import labels
from earlybird.data.collective_algorithms import (
    DEFAULT,
    PERSISTENT,
    UNMODELLED,
    family_of,
    mpi_algorithms,
    parse_method,
    persistent_algorithms,
)
from earlybird.data.collective_configuration import setting
from earlybird.data.shell_commands import quoted
from earlybird.data.units import format_bytes
from earlybird.present import commands
from earlybird.present.core.parts import Answer, Chapter, Figure, figures_left, grouped
from earlybird.present.core.points import Point
from earlybird.present.core.text import method_answer, time_text
from earlybird.present.material import Material, Verification
from earlybird.present.subjects.collectives.figures import (
    best_text,
    collective_figures,
    map_figures,
    mapping_figures,
)
from earlybird.present.subjects.collectives.form_tables import (
    brief_forms_table,
    collective_forms,
    forms_sentence,
    forms_table,
)
from earlybird.present.subjects.collectives.residuals import residual_figures
from earlybird.present.subjects.collectives.tables import (
    brief_table,
    crossovers_table,
    times_tables,
    verifications_table,
)
from earlybird.present.subjects.collectives.view import Collective, base, choices, collectives

ID = "collectives"
QUESTION = "Which algorithm should a collective use?"
ADVISE = "earlybird advise collective"
NOUN, NOUN_OF_MPI = "algorithm", "algorithm of the MPI"
_SLOTS = re.compile(r"[0-9]+x[0-9]+x[0-9]+")
MAX_LISTED = 4  # pairs of operation and MPI in the answer
MAX_SETTINGS = 24  # settings (operation, MPI, mapping) with figures; the tables have all


def collective_chapter(material: Material) -> Chapter:
    measured, forms = collectives(material), collective_forms(material)
    if not measured and not forms:
        return Chapter(ID, QUESTION, "")
    sentences, best_form = _sentences(measured), forms_sentence(forms)
    crossovers, verifications = crossovers_table(measured), verifications_table(material.verifications)
    return Chapter(
        ID,
        QUESTION,
        sentences[0]
        if sentences
        else "A profile contains models of collectives, but no measurement of a collective was given.",
        [
            *sentences[1:],
            *_algorithm_names(measured),
            *([best_form] if best_form else []),
            *_verification_lines(material.verifications),
        ],
        warnings=_contradicted(material.verifications),
        answers=[_answer(collective, material) for collective in _chosen(measured)],
        figures=_figures(measured, material),
        closing=[forms_table(forms)] if forms else [],
        tables=[
            *(table for table in (crossovers, verifications) if table.rows),
            *times_tables(measured),
        ],
        brief=[
            *([brief_table(measured)] if measured else []),
            *([brief] if (brief := brief_forms_table(forms)).rows else []),
        ],
        choices=choices(measured) if measured else {},
    )


def _algorithm_names(measured: Sequence[Collective]) -> list[str]:
    names = {base(method) for one in measured for method in one.methods()}
    ordered = sorted(names, key=labels.method_order)
    listed = labels.listed([f"{labels.method(name)} ({name})" for name in ordered])
    return [f"Algorithms, with their names in options: {listed}."] if names else []


def _figures(measured: Sequence[Collective], material: Material) -> list[Figure]:
    figures: list[Figure] = []
    drawn = measured[:MAX_SETTINGS]
    for k, collective in enumerate(drawn):
        figures += collective_figures(k, collective, drawn, material.references)
    figures += mapping_figures(drawn)
    for k, collective in enumerate(drawn):
        figures += [*map_figures(k, collective), *residual_figures(k, collective)]
    return figures + figures_left("collectives", len(measured), MAX_SETTINGS)


def _sentences(measured: Sequence[Collective]) -> list[str]:
    """One sentence per operation and MPI."""
    chosen = _chosen(measured)
    sentences = [_sentence(collective) for collective in chosen[:MAX_LISTED]]
    num_left = len(chosen) - MAX_LISTED
    return sentences + (
        [f"{labels.counted(num_left, 'more pair')} of operation and MPI: see below."] if num_left > 0 else []
    )


def _chosen(measured: Sequence[Collective]) -> list[Collective]:
    """For each operation and MPI, the mapping with the most ranks."""
    groups = grouped(measured, lambda collective: (collective.operation_text, collective.label))
    return [max(group, key=lambda collective: collective.ranks()[-1]) for group in groups.values()]


def _answer(collective: Collective, material: Material) -> Answer:
    """The best of the MPI's algorithms at the largest size among the most ranks."""
    point = collective.of_ranks(collective.ranks()[-1])[-1]
    ranks = labels.counted(point.ranks, "rank")
    what = f"{labels.capital(collective.setting_text)}, {format_bytes(point.size_bytes)}, {ranks}"
    of_mpi = _of_mpi(point)
    if not of_mpi.results:
        return method_answer(what, point, NOUN, DEFAULT, "", ", for comparison; the MPI cannot select it")
    own = point.best(DEFAULT)
    more = f". For comparison: {_own_text(point, own)}" if own.startswith(labels.OWN) else ""
    do = (
        _set(collective, of_mpi)
        if collective.operation in UNMODELLED
        else _advise(collective, point, material)
    )
    return method_answer(what, of_mpi, NOUN_OF_MPI, DEFAULT, do, more)


def _of_mpi(point: Point) -> Point:
    return point.only(method for method in point.results if not method.startswith(labels.OWN))


def _own_text(point: Point, own: str) -> str:
    """`our binomial tree of Earlybird takes 4.89 us; the MPI cannot select it`."""
    return f"{labels.method(own)} (Earlybird's) takes {time_text(point, own)}; the MPI cannot select it"


def _set(collective: Collective, point: Point) -> str:
    """How to use the best of the MPI's algorithms where no model advises, so at this size only."""
    method = point.best(DEFAULT)
    family = _family(collective)
    if family is None or parse_method(method).name not in (
        PERSISTENT,
        *mpi_algorithms(family, collective.operation),
        *persistent_algorithms(family, collective.operation),
    ):
        return f"use {method}; see the manual of this MPI"
    text = setting(family, collective.operation, method, point.ranks)
    return text if parse_method(method).is_persistent else f"set `{text}`"


def _family(collective: Collective) -> str | None:
    """The MPI's family; a run may have launches of several."""
    run = collective.run
    if run is None:
        return None
    used = {sample.launch for sample in run.samples if sample.config.get("mpi") == collective.mpi}
    return next((family_of(launch) for launch in run.launches if launch.get("id") in used), None)


def _advise(collective: Collective, point: Point, material: Material) -> str:
    """How to find the setting of the MPI's best algorithm at a point."""
    config, ranks = point.config, point.ranks
    layout = str(config.get("layout", ""))
    slots = [int(count) for count in layout.split("x")] if _SLOTS.fullmatch(layout) else []
    options = [
        f"{ADVISE} --op {quoted(collective.operation)} --ranks {ranks}",
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
    """The best algorithm at the smallest and at the largest size among the most ranks."""
    points = collective.of_ranks(collective.ranks()[-1])
    ends = [points[0], points[-1]] if len(points) > 1 else points
    found = [f"at {format_bytes(point.size_bytes)}, {best_text(point)}" for point in ends]
    mapped = f" mapped by {collective.map_by}" if collective.map_by else ""
    what = f"{labels.capital(collective.operation_text)} with {collective.label}"
    ranks = labels.counted(points[0].ranks, "rank")
    crowded = " (there were more ranks than cores)" if any(point.oversubscribed for point in ends) else ""
    return f"{what} among {ranks}{mapped}: {'; '.join(found)}{crowded}."


def _verification_lines(verifications: Sequence[Verification]) -> list[str]:
    """How many of the forced algorithms were verified."""
    if not verifications:
        return []
    counts = Counter(verification.verdict for verification in verifications)
    verdicts = [verdict for verdict in ("confirmed", "contradicted", "not verified") if counts[verdict]]
    counted = labels.listed([f"{counts[verdict]} {verdict}" for verdict in verdicts])
    what = labels.counted(len(verifications), "check")
    return [f"Algorithms were verified by delaying ranks: of {what}, {counted}."]


def _contradicted(verifications: Sequence[Verification]) -> list[str]:
    """Which of the forced algorithms did not run."""
    contradicted = [
        f"{labels.method(one.method)} ({labels.operation(one.operation)}, {labels.flavour(one.mpi)}, "
        f"{labels.counted(one.ranks, 'rank')})"
        for one in verifications
        if one.verdict == "contradicted"
    ]
    names = labels.listed_briefly(list(dict.fromkeys(contradicted)), 5)
    return [f"Do not use the times of {names}: another algorithm ran."] if contradicted else []
