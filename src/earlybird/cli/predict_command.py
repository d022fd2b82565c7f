"""`earlybird predict`: the time of an exchange on every rank; pipelines and collectives are in modules of
their own."""

import numpy as np
import typer

from earlybird.cli.common import (
    FORMAT,
    JSON,
    Format,
    make_group,
    note,
    print_csv,
    print_json,
    print_table,
    prints_all,
)
from earlybird.cli.options import MixedOption, ProfilesOption, ShareOption
from earlybird.cli.predict_collective import collective
from earlybird.cli.predict_pipeline import pipeline
from earlybird.data.errors import InputError
from earlybird.data.layout import MAPPINGS, Layout, parse_layout
from earlybird.data.pattern import Pattern, load_pattern
from earlybird.data.prediction import Prediction
from earlybird.data.profile import Profile, load_profile
from earlybird.data.units import format_bytes, format_seconds
from earlybird.predict import MODELS, merge_profiles, predict_exchange

MAX_TABLE_ROWS = 32
SLOWEST_ROWS = 10

PATTERNS = typer.Argument(
    ..., metavar="PATTERN", help="The messages: CSV src,dst,bytes, .npz or Matrix Market."
)


def predict(
    patterns: list[str] = PATTERNS,
    profile: ProfilesOption = [],  # noqa: B006
    layout: str | None = typer.Option(
        None,
        "--layout",
        help="NODESxSOCKETSxRANKS, ranks per socket, or a CSV.  [default: one node for all ranks of PATTERN]",
    ),
    map_by: str | None = typer.Option(
        None, "--map-by", help="How ranks fill --layout: core, socket or node.  [default: core]"
    ),
    model: str = typer.Option("staircase", "--model", help=f"One of {', '.join(MODELS)}."),
    share: ShareOption = None,
    mixed: MixedOption = None,
    format: Format = FORMAT,
    json: bool = JSON,
) -> None:
    """Predict the time of the exchange PATTERN on every rank, with all messages posted at once.

    Models of Thune et al. 2023: staircase (7)-(9) and (12)-(17), max-rate (10), postal (1); times of messages
    inside a node and between nodes are added (18). fair is the staircase inside nodes; between nodes it
    limits senders as well as receivers. receive is the time to receive without latency. low and high come
    from the profile's replicates: they show how well the parameters are known, not how well the model
    describes the machine.
    """
    path = _pattern_path(patterns)
    if not profile:
        raise InputError("predict needs a profile; add --profile, a file written by `earlybird fit`")
    if layout is None and map_by is not None:
        raise InputError(
            f"--map-by {map_by} is how ranks fill --layout, which is missing; give both, or omit it"
        )
    pattern = load_pattern(path)
    joined = merge_profiles([load_profile(name) for name in profile])
    options = _model_options(model, share, mixed)
    where = _one_node(pattern, joined) if layout is None else parse_layout(layout, map_by or MAPPINGS[0])
    prediction = predict_exchange(pattern, where, joined, model, **options)
    print_prediction(prediction, Format.json if json else format, pattern)


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


def print_prediction(prediction: Prediction, format: Format, pattern: Pattern | None = None) -> None:
    """Print the times of every rank; notes, and the amount of messages of a known pattern, on stderr."""
    for reservation in prediction.extra.get("notes", ()):
        note(f"warning: {reservation}")
    if format is Format.json:
        print_json(prediction.to_json())
    elif format is Format.csv:
        _print_csv(prediction)
    else:
        _print_table(prediction, pattern)


def _model_options(model: str, share: str | None, mixed: str | None) -> dict[str, str]:
    """The options given; InputError for one that the model does not use."""
    if share is not None and model != "fair":
        raise InputError(f"--share applies to --model fair, but the model is {model}; omit --share")
    if mixed is not None and model not in ("staircase", "fair"):
        raise InputError(
            f"--mixed applies to the models staircase and fair, but the model is {model}; omit --mixed"
        )
    return {name: value for name, value in (("share", share), ("mixed", mixed)) if value is not None}


def _pattern_path(paths: list[str]) -> str:
    if len(paths) != 1:
        raise InputError(
            f"predict takes one pattern, but {len(paths)} are given; give one file, such as mesh.csv"
        )
    return paths[0]


def _columns(prediction: Prediction) -> dict[str, np.ndarray]:
    columns = {
        "time_s": prediction.time_s,
        "receive_s": prediction.receive_s,
        "intra_node_s": prediction.intra_node_s,
        "inter_node_s": prediction.inter_node_s,
    }
    if prediction.time_interval_s is not None:
        columns |= {
            "time_low_s": prediction.time_interval_s[:, 0],
            "time_high_s": prediction.time_interval_s[:, 1],
        }
    return columns


def _print_csv(prediction: Prediction) -> None:
    columns = _columns(prediction)
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    print_csv(["rank", *columns], [[rank, *row] for rank, row in enumerate(rows)])


def _print_table(prediction: Prediction, pattern: Pattern | None) -> None:
    time_s, columns = prediction.time_s, _columns(prediction)
    ranks = np.arange(len(time_s))
    if len(ranks) > MAX_TABLE_ROWS and not prints_all():
        ranks = np.argsort(-time_s, kind="stable")[:SLOWEST_ROWS]
        note(f"the {SLOWEST_ROWS} slowest of {len(time_s)} ranks; --all prints all")
    header = ["rank", *(name.removesuffix("_s").replace("_", "-") for name in columns)]
    print_table(
        header, [[rank, *(format_seconds(values[rank]) for values in columns.values())] for rank in ranks]
    )
    slowest = prediction.slowest_rank
    amount = (
        f"; {pattern.num_messages} messages, {format_bytes(pattern.total_bytes)}"
        if pattern is not None
        else ""
    )
    note(f"{prediction.model}: the slowest rank is {slowest} with {format_seconds(time_s[slowest])}{amount}")


command = make_group(
    (
        ("exchange", predict, "earlybird predict mesh.csv --profile profile.json --layout 1x1x4"),
        (
            "pipeline",
            pipeline,
            "earlybird predict pipeline --threads 8 --partitions 64 --size 64MiB --gamma 100us/MB "
            "--profile profile.json",
        ),
        (
            "collective",
            collective,
            "earlybird predict collective --op bcast --ranks 256 --size 1 --map-by node --profile p.json",
        ),
    ),
    name="predict",
    help="Predict the cost of communication with a profile. `earlybird predict PATTERN` is short for "
    "`earlybird predict exchange PATTERN`.",
    first_is_default=True,
)
