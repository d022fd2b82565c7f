"""The models of exchanges, one record each, in the order of tables, legends and colours.

`predict.solvers` registers the formula of each under its name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from earlybird.data.errors import InputError

# Which ends of a message have a limited bandwidth.
NO_END, RECEIVERS, BOTH_ENDS = "no end", "receivers", "both ends"
# Exchanges of which docs/results compares the errors of the models: by the farthest messages, and between
# nodes by the machine.
INSIDE_NODES, BETWEEN_NODES = "inside nodes", "between nodes over TCP"
BETWEEN_SIMULATED_NODES = "between nodes that SimGrid simulates"
REASON = "model_reason"  # the key of a result that says why its model was chosen
EVIDENCE = (INSIDE_NODES, BETWEEN_NODES, BETWEEN_SIMULATED_NODES)


@dataclass(frozen=True)
class ExchangeModel:
    """The properties of a model except its formula.

    Attributes
    ----------
    limits : NO_END, RECEIVERS or BOTH_ENDS.
    errs_least : the exchanges, out of EVIDENCE, in which it has the least error according to docs/results.
    inside : the name of the model that it equals inside nodes; "" if it differs from all others there.
    is_joint : messages inside and outside a socket compete with each other, and a sender may wait for
        delivery; otherwise the times of levels add up.
    """

    name: str
    limits: str
    errs_least: tuple[str, ...] = ()
    inside: str = ""
    is_joint: bool = False


# The model of an optimiser: its times are kept while ranks move (`predict.changing`).
KEPT = ExchangeModel("staircase", RECEIVERS, (INSIDE_NODES,), is_joint=True)
# The model with an option: what gets an equal share.
SHARING = ExchangeModel("fair", BOTH_ENDS, (BETWEEN_SIMULATED_NODES,), KEPT.name, is_joint=True)
_MODELS = (
    KEPT,
    SHARING,
    ExchangeModel("queue", BOTH_ENDS, (BETWEEN_NODES,), KEPT.name, is_joint=True),
    ExchangeModel("max-rate", RECEIVERS),
    ExchangeModel("postal", NO_END),
)
# Of messages inside and outside a socket; of a rank's times inside its node and between nodes.
MIXED, COMBINE = ("per-level", "union"), ("sum", "overlap")
SHARES = ("message", "process")  # what gets equal parts of a bandwidth
MODELS = {model.name: model for model in _MODELS}


def exchange_model(name: str) -> ExchangeModel:
    """Return the record of a model; raise InputError for an unknown name."""
    if not isinstance(name, str) or name not in MODELS:
        raise InputError(f"the model is {name!r}; choose one of {', '.join(MODELS)}")
    return MODELS[name]


def variant_of(model: str, share: str | None, mixed: str | None, combine: str | None) -> dict[str, str]:
    """Return the given variants of a model; raise InputError for a variant that the model does not use."""
    if share is not None and model != SHARING.name:
        raise InputError(f"--share applies to --model {SHARING.name}, but the model is {model}; omit --share")
    if mixed is not None and not MODELS[model].is_joint:
        joint = [name for name, record in MODELS.items() if record.is_joint]
        names = f"{', '.join(joint[:-1])} and {joint[-1]}"
        raise InputError(f"--mixed applies to the models {names}, but the model is {model}; omit --mixed")
    given = {"share": share, "mixed": mixed, "combine": combine}
    return {name: value for name, value in given.items() if value is not None}


def with_reason(name: str, keys: Mapping[str, Any]) -> str:
    """Return a model, with the reason why it was chosen if the keys of its result state one: `queue (errs
    least between nodes)`."""
    return f"{name} ({keys[REASON]})" if keys.get(REASON) else name


def model_order(name: str) -> int:
    """Return the position of a model in tables; unknown names, as in newer files, come last."""
    return list(MODELS).index(name) if name in MODELS else len(MODELS)
