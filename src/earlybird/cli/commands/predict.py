"""`earlybird predict`: the time of an exchange on every rank; pipelines and collectives are in modules of
their own."""

from dataclasses import replace
from typing import Annotated

import typer

from earlybird.cli.commands.predict_collective import collective
from earlybird.cli.commands.predict_pipeline import pipeline
from earlybird.cli.commands.predict_program import program
from earlybird.cli.options.command import FORMAT, make_group
from earlybird.cli.options.nodes import SocketsOption, check_nodes
from earlybird.cli.options.packing import PackingOptions
from earlybird.cli.options.shared import (
    LAYOUT_HELP,
    CombineOption,
    LayoutMapByOption,
    MixedOption,
    ProfilesOption,
    ShareOption,
    check_map_by,
    load_profiles,
)
from earlybird.cli.options.values import OneOf
from earlybird.cli.session.exchanges import load_exchange
from earlybird.data.errors import InputError
from earlybird.data.exchange_models import MODELS, variant_of
from earlybird.data.layout import parse_layout
from earlybird.data.levels import MAPPINGS
from earlybird.data.simulated_machine import parse_simulated_machine
from earlybird.predict import COMBINE, MIXED, SHARES, Predictor, choose_model, predict_exchange
from earlybird.predict.equal_nodes import equal_nodes, node_numbers, one_node
from earlybird.predict.exchange import used_levels
from earlybird.predict.node_counts import node_counts
from earlybird.predict.on_machine import MODEL as LINKS
from earlybird.predict.on_machine import predict_on_machine
from earlybird.predict.reuse import reuse_note
from earlybird.predict.what_if import changed_profile, sensitivities, unused_settings
from earlybird.predict.what_if import tolerance as tolerances
from earlybird.present.render.data import Format
from earlybird.present.render.notes import note
from earlybird.present.subjects.exchange.terminal import print_prediction
from earlybird.present.subjects.what_if.terminal import (
    print_node_counts,
    print_sensitivities,
    print_tolerance,
)


def predict(
    *,
    patterns: Annotated[
        list[str],
        typer.Argument(metavar="PATTERN", help="The messages: CSV src,dst,bytes, .npz or Matrix Market."),
    ],
    profile: ProfilesOption = None,
    layout: Annotated[
        str | None,
        typer.Option(
            help=f"{LAYOUT_HELP}  [default: one node for all ranks of PATTERN; none with --machine]"
        ),
    ] = None,
    map_by: LayoutMapByOption = None,
    model: Annotated[
        str | None,
        typer.Option(
            help=f"See docs/models.md; {LINKS} with --machine.  [default: the model that errs least]"
        ),
        OneOf(*MODELS, LINKS),
    ] = None,
    share: ShareOption = None,
    mixed: MixedOption = None,
    combine: CombineOption = None,
    packing: PackingOptions,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="What if: change a parameter of the profile, such as inter_node.bandwidth=2x, "
            "inter_node.latency=1us or intra_socket.eager.latency=0.5x; repeat for several.",
            metavar="LEVEL.PARAMETER=VALUE",
        ),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            help="Use this machine instead of --profile: NODESxSOCKETSxCORES or a JSON file (see "
            "docs/simulation.md). Messages share all its links, also those between switches."
        ),
    ] = None,
    nodes: Annotated[
        str | None,
        typer.Option(
            help="Instead of --layout: numbers of nodes to compare, such as 1,2,4, which have equally many "
            "ranks each.",
        ),
    ] = None,
    sockets: SocketsOption = None,
    sensitivity: Annotated[
        bool,
        typer.Option(
            "--sensitivity", help="Print how much each parameter matters to the slowest rank instead."
        ),
    ] = False,
    tolerance: Annotated[
        bool,
        typer.Option(
            "--tolerance",
            help="Print how much slower each latency and bandwidth may be until the slowest rank takes 1 % "
            "or 5 % longer instead; with --json also the time against them, which report draws.",
        ),
    ] = False,
    format: Format = FORMAT,
) -> None:
    """Predict the time of an exchange on every rank.

    All messages of PATTERN are posted at once. The last line names the model, and why it was chosen; the
    models are described in docs/models.md. Column receive is the time to receive, without latency. time-low
    and time-high are printed if the profile has replicates: the 95 % interval of time that follows from the
    uncertainty of its parameters, without the error of the model. With --sensitivity, a row for each
    parameter says by how many percent the slowest rank takes longer if the parameter makes communication 1 %
    slower. With --nodes, a row for each number of nodes has the time of its slowest rank, and the volume that
    stays on sockets and nodes. With --machine, the model is links: the messages that pass a link of the
    described machine share it evenly.
    """
    if len(patterns) != 1:
        raise InputError(
            f"predict takes one pattern, but {len(patterns)} are given; give one file, such as mesh.csv"
        )
    _check_options(layout, map_by, nodes, sockets, sensitivity, tolerance)
    packed = packing.read()
    if packed is not None:
        questions = {"--nodes": nodes is not None, "--sensitivity": sensitivity, "--tolerance": tolerance}
        for name in (name for name, is_given in questions.items() if is_given):
            raise InputError(
                f"--packing and {name} are both given, but packing depends on neither nodes nor network; "
                "give one of them"
            )
    map_by = map_by or MAPPINGS[0]
    if machine is not None:
        others = {
            "--profile": profile, "--model": model != LINKS and model, "--share": share, "--mixed": mixed,
            "--combine": combine, "--set": settings, "--nodes": nodes, "--sensitivity": sensitivity,
            "--tolerance": tolerance, "--packing": packed,
        }  # fmt: skip
        _check_machine_options([name for name, value in others.items() if value], layout)
        pattern, described = load_exchange(patterns[0]), parse_simulated_machine(machine)
        where = parse_layout(str(layout), map_by)
        print_prediction(predict_on_machine(pattern, where, described), format, pattern)
        return
    if model == LINKS:
        raise InputError(f"the model {LINKS} needs --machine instead of --profile; give it, or another model")
    joined = changed_profile(load_profiles(profile), settings or ())
    pattern = load_exchange(patterns[0])
    if nodes is not None:
        layouts = [equal_nodes(pattern, count, sockets, joined, map_by) for count in node_numbers(nodes)]
    elif layout is not None:
        layouts = [parse_layout(layout, map_by)]
    else:
        assumed, remark = one_node(pattern, joined)
        layouts = [assumed]
        note(remark)
    chosen = choose_model(used_levels(pattern, layouts), joined, model)
    options = variant_of(chosen.name, share, mixed, combine)
    asked = {"settings": settings, "combine": combine if combine != COMBINE[0] else None}
    given = chosen.to_json() | {name: value for name, value in asked.items() if value}
    for unused in unused_settings(settings or (), pattern, layouts):
        note(unused)
    if nodes is not None:
        counts = node_counts(pattern, layouts, joined, chosen.name, **options)
        print_node_counts(replace(counts, extra=given), format)
    elif sensitivity or tolerance:
        predictor = Predictor(pattern, layouts[0], mixed=mixed or MIXED[0], combine=combine or COMBINE[0])
        arguments = predictor, joined, chosen.name, share or SHARES[0]
        if sensitivity:
            print_sensitivities(list(sensitivities(*arguments)), chosen.name, format, given)
        else:
            print_tolerance(replace(tolerances(*arguments), extra=given), format)
    else:
        prediction = predict_exchange(pattern, layouts[0], joined, chosen.name, packing=packed, **options)
        if reused := reuse_note(pattern, layouts[0], joined):
            note(reused)
        more = {
            name: value for name, value in given.items() if name != "combine"
        }  # which it has if it matters
        print_prediction(replace(prediction, extra={**prediction.extra, **more}), format, pattern)


def _check_machine_options(others: list[str], layout: str | None) -> None:
    """Raise InputError for `others`, options that need a profile, and without a layout."""
    if others:
        needs = "" if others[0] == "--profile" else ", which needs a profile,"
        raise InputError(f"--machine and {others[0]}{needs} are both given; give one of them")
    if layout is None:
        raise InputError("--machine needs the nodes of the ranks; add --layout, such as 8x1x2")


def _check_options(
    layout: str | None,
    map_by: str | None,
    nodes: str | None,
    sockets: int | None,
    sensitivity: bool,
    tolerance: bool,
) -> None:
    """Raise InputError for options that exclude each other or lack an option that they need."""
    check_map_by(map_by, layout or nodes)
    check_nodes(layout, nodes, sockets)
    given = {"--nodes": nodes is not None, "--sensitivity": sensitivity, "--tolerance": tolerance}
    excluded = [name for name, value in given.items() if value]
    if len(excluded) > 1:
        raise InputError(f"{excluded[0]} and {excluded[1]} are both given; give one of them")


command = make_group(
    [
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
        (
            "program",
            program,
            "earlybird predict program rec --profile profile.json --set inter_node.bandwidth=2x",
        ),
    ],
    name="predict",
    help="Predict the cost of communication. `earlybird predict PATTERN` is short for "
    "`earlybird predict exchange PATTERN`.",
    first_is_default=True,
)
