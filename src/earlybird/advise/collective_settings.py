"""One configuration that makes an MPI use the best of its own algorithms, of one operation or several."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from earlybird.advise.algorithm_choice import AlgorithmChoice, Candidate
from earlybird.data import labels
from earlybird.data.collective_algorithms import DEFAULT, mpi_algorithms
from earlybird.data.collective_configuration import (
    Configuration,
    Region,
    configuration,
    mpich_selects,
    selection_configuration,
)
from earlybird.data.collective_form import CollectiveForm
from earlybird.data.mpich_selection import Selection
from earlybird.predict.collective import Placed

# Why Open MPI's rules cannot leave a size to the default on several nodes of several ranks.
_OTHER_DEFAULT = "rules give Open MPI's component tuned priority over the one that chooses on these nodes"
_SINGLE = (
    "what is faster at one size only, and not at the sizes measured next to it, may be so by chance (measure "
    "more --sizes around it)"
)


def has_setting(form: CollectiveForm, family: str | None) -> bool:
    """Return whether the setting that makes the MPI use the form's algorithm is known."""
    return form.algorithm in (DEFAULT, *mpi_algorithms(family, form.operation))


def configure(
    choices: Sequence[AlgorithmChoice], size_bytes: int | None, selection: Selection | None
) -> Configuration | None:
    """Return the configuration for the best of the MPI's own algorithms of all operations; at `size_bytes` if
    the MPI accepts only one algorithm for all sizes.
    """
    placed, family = choices[0].placed, choices[0].family
    of_mpi = [[one for one in choice.candidates if has_setting(one.form, family)] for choice in choices]
    if family is None or not any(of_mpi):
        return None
    if family != "mpich":
        selection = None
    if selection is not None:
        of_mpi = [
            [one for one in able if mpich_selects(one.form.operation, one.method, placed.ranks)]
            for able in of_mpi
        ]
    regions = [
        region for choice, able in zip(choices, of_mpi, strict=True) for region in _regions(choice, able)
    ]
    if selection is not None:
        settings = selection_configuration(selection, regions, len(np.unique(placed.node)))
    elif family == "openmpi" and _has_nodes_of_several_ranks(placed):
        settings = _rules_for_all_or_none(regions, size_bytes)
    else:
        settings = configuration(family, regions, size_bytes)
    single = [
        region for choice, able in zip(choices, of_mpi, strict=True) for region in _single_sizes(choice, able)
    ]
    return replace(settings, left_out={**settings.left_out, **dict.fromkeys(single, _SINGLE)})


def _regions(choice: AlgorithmChoice, able: Sequence[Candidate]) -> list[Region]:
    """Return the regions that were measured to be faster than the default, among the candidates that can be
    set; without any times of the default, the regions that the models predict to be fastest.
    """
    operation, ranks = choice.operation, choice.placed.ranks
    if not able:
        return [Region(operation, DEFAULT, ranks)]
    choice = replace(choice, candidates=able)
    if choice.default is not None:
        found = choice.measured_regions()
        return [Region(operation, one.method, ranks, start, end) for start, end, one in found] or [
            Region(operation, DEFAULT, ranks)
        ]
    found = choice.over_sizes().regions()
    last = len(found) - 1
    return [
        Region(operation, one.method, ranks, start if k else 0, None if k == last else end - 1)
        for k, (start, end, one) in enumerate(found)
    ]


def _single_sizes(choice: AlgorithmChoice, able: Sequence[Candidate]) -> list[Region]:
    """Return the sizes at which an algorithm was measured to be faster, but not at a size next to them."""
    choice = replace(choice, candidates=able)
    return [
        Region(choice.operation, one.method, choice.placed.ranks, size, size)
        for size, one in (choice.unsupported() if able else [])
    ]


def _rules_for_all_or_none(regions: Sequence[Region], size_bytes: int | None) -> Configuration:
    """Return the rules of Open MPI on several nodes of several ranks, if no operation keeps its default at
    any size.

    They only apply if the component `tuned` has priority, for every operation; its own choice differs from
    that of `han`, the default of the MPI on such nodes.
    """
    settings = configuration("openmpi", regions, size_bytes)
    # `size_bytes` outside the regions of a gather or scatter gives it the default, though no region has it.
    kept_regions = [one for one in (*regions, *settings.regions) if one.method == DEFAULT]
    keeping = list(dict.fromkeys(one.operation for one in kept_regions))
    if settings.idle or not keeping:
        return settings
    others = [one for one in regions if one.method != DEFAULT]
    operations = settings.operations
    reason = f"{_OTHER_DEFAULT}, which is best at other sizes"
    if len(operations) > 1:
        kept = labels.listed(keeping)
        reason = (
            f"{_OTHER_DEFAULT}, in every operation, and at some sizes of {kept} nothing is clearly faster "
            "than that one"
        )
        gaining = [one for one in operations if one not in keeping]
        if gaining:
            reason += f" (rules for {labels.listed(gaining)} alone would change {kept}, too)"
    nothing = [Region(operation, DEFAULT, regions[0].ranks) for operation in operations]
    return replace(configuration("openmpi", nothing), left_out=dict.fromkeys(others, reason))


def _has_nodes_of_several_ranks(placed: Placed) -> bool:
    _, ranks = np.unique(placed.node, return_counts=True)
    return len(ranks) > 1 and bool(ranks.max() > 1)


def configuration_json(settings: Configuration) -> dict[str, Any]:
    """Return the JSON object of a configuration; for several operations, regions name their operation."""
    several = len(settings.operations) > 1
    return {
        "kind": settings.kind,
        "text": settings.text,
        "use": settings.use,
        "left_out": [
            f"{region.operation}: {region.describe()}" if several else region.describe()
            for region in settings.left_out
        ],
        "regions": [
            ({"operation": one.operation} if several else {})
            | {"method": one.method, "from_bytes": one.from_bytes, "to_bytes": one.to_bytes}
            for one in settings.regions
        ],
    }
