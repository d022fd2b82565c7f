"""`earlybird predict`: the time of an exchange on every rank; pipelines and collectives are in modules of
their own."""

from typing import Annotated

import numpy as np
import typer

from earlybird.cli.commands.predict_collective import collective
from earlybird.cli.commands.predict_pipeline import pipeline
from earlybird.cli.options.command import FORMAT, make_group
from earlybird.cli.options.shared import LAYOUT_HELP, MixedOption, ProfilesOption, ShareOption, load_profiles
from earlybird.cli.output.exchange import print_prediction, print_sensitivities
from earlybird.cli.output.notes import note
from earlybird.cli.output.printing import Format
from earlybird.cli.session.memory import load_fitting_pattern
from earlybird.data.errors import InputError
from earlybird.data.layout import MAPPINGS, Layout, parse_layout
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Profile
from earlybird.predict import BOTH_ENDS, MIXED, MODELS, SHARES, Predictor, predict_exchange
from earlybird.predict.what_if import changed_profile, sensitivities


def predict(
    patterns: Annotated[
        list[str],
        typer.Argument(metavar="PATTERN", help="The messages: CSV src,dst,bytes, .npz or Matrix Market."),
    ],
    profile: ProfilesOption = None,
    layout: Annotated[
        str | None,
        typer.Option(help=f"{LAYOUT_HELP}  [default: one node for all ranks of PATTERN]"),
    ] = None,
    map_by: Annotated[
        str | None, typer.Option(help="How ranks fill --layout: core, socket or node.  [default: core]")
    ] = None,
    model: Annotated[str, typer.Option(help=f"One of {', '.join(MODELS)}.")] = "staircase",
    share: ShareOption = None,
    mixed: MixedOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="What if: change a parameter of the profile, such as inter_node.bandwidth=2x, "
            "inter_node.latency=1us or intra_socket.eager.latency=0.5x; repeat for several.",
            metavar="LEVEL.PARAMETER=VALUE",
        ),
    ] = None,
    sensitivity: Annotated[
        bool,
        typer.Option(
            "--sensitivity", help="Print how much each parameter matters to the slowest rank instead."
        ),
    ] = False,
    format: Format = FORMAT,
) -> None:
    """Predict the time of an exchange on every rank.

    All messages of PATTERN are posted at once. The models are described in docs/models.md: staircase is the
    default; fair and queue also limit the senders between nodes, and usually err less there; max-rate and
    postal are simpler, for comparison. Column receive is the time to receive, without latency. time-low and
    time-high are printed if the profile has replicates: the 95 % interval of time that follows from the
    uncertainty of its parameters, without the error of the model. With --sensitivity, a row for each
    parameter says by how many percent the slowest rank takes longer if the parameter makes communication 1 %
    slower.
    """
    if len(patterns) != 1:
        raise InputError(
            f"predict takes one pattern, but {len(patterns)} are given; give one file, such as mesh.csv"
        )
    if layout is None and map_by is not None:
        raise InputError(
            f"--map-by {map_by} is how ranks fill --layout, which is missing; give both, or omit it"
        )
    joined = changed_profile(load_profiles(profile), settings or ())
    pattern = load_fitting_pattern(patterns[0])
    options = _model_options(model, share, mixed)
    where = _one_node(pattern, joined) if layout is None else parse_layout(layout, map_by or MAPPINGS[0])
    if sensitivity:
        predictor = Predictor(pattern, where, mixed=mixed or MIXED[0])
        rows = list(sensitivities(predictor, joined, model, share or SHARES[0]))
        print_sensitivities(rows, model, format)
        return
    prediction = predict_exchange(pattern, where, joined, model, **options)
    if settings:
        prediction.extra["settings"] = settings
    print_prediction(prediction, format, pattern)


def _one_node(pattern: Pattern, profile: Profile) -> Layout:
    """One node with the ranks of `pattern`, which fill the sockets of the measured machine one after the
    other; all on one socket if these are unknown or messages between them were not measured."""
    num_ranks = max(pattern.num_ranks_named, 1)
    cores = profile.machine.get("cores_per_socket")
    known = isinstance(cores, list) and len(cores) > 1 and "inter_socket" in profile.levels
    per_socket = max(min(cores), -(-num_ranks // len(cores))) if known else num_ranks
    rank = np.arange(num_ranks)
    sockets = -(-num_ranks // per_socket)
    text = f"1 node of {num_ranks} ranks"
    filled = f"{sockets} sockets of at most {per_socket}" if sockets > 1 else "one socket"
    note(f"no --layout is given: assuming {text} on {filled}")
    return Layout(np.zeros_like(rank), rank // per_socket, text)


def _model_options(model: str, share: str | None, mixed: str | None) -> dict[str, str]:
    """The options given; InputError for one that the model does not use."""
    if share is not None and model != "fair":
        raise InputError(f"--share applies to --model fair, but the model is {model}; omit --share")
    if mixed is not None and model not in ("staircase", *BOTH_ENDS):
        raise InputError(
            f"--mixed applies to the models staircase, fair and queue, but the model is {model}; omit --mixed"
        )
    return {name: value for name, value in (("share", share), ("mixed", mixed)) if value is not None}


_EXCHANGE = "earlybird predict mesh.csv --profile profile.json --layout 1x1x4"
_PIPELINE = (
    "earlybird predict pipeline --threads 8 --partitions 64 --size 64MiB --gamma 100us/MB "
    "--profile profile.json"
)
_COLLECTIVE = "earlybird predict collective --op bcast --ranks 256 --size 1 --map-by node --profile p.json"
command = make_group(
    [
        ("exchange", predict, _EXCHANGE),
        ("pipeline", pipeline, _PIPELINE),
        ("collective", collective, _COLLECTIVE),
    ],
    name="predict",
    help="Predict the cost of communication with a profile. `earlybird predict PATTERN` is short for "
    "`earlybird predict exchange PATTERN`.",
    first_is_default=True,
)
