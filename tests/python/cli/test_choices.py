"""Options with a few values: the parser shows, checks and completes them, and functions get text."""

from typing import Annotated

import pytest
import typer

from earlybird.cli.commands import predict
from earlybird.cli.options.command import make_command
from earlybird.cli.options.values import ListOf, OneOf
from earlybird.data.errors import InputError
from earlybird.data.exchange_models import MODELS


def test_a_function_gets_text_or_none_and_the_default_as_it_is_declared():
    given = []

    def work(
        model: Annotated[str | None, typer.Option(help="The model."), OneOf(*MODELS)] = None,
        order: Annotated[str, typer.Option(help="The order."), OneOf("core", "node")] = "core",
    ) -> None:
        given.append((model, order))

    command = make_command(work, name="work", example="earlybird work")
    command.main([], standalone_mode=False)
    command.main(["--model", "max-rate", "--order", "node"], standalone_mode=False)
    assert given == [(None, "core"), ("max-rate", "node")]
    assert {type(value) for value in given[1]} == {str}


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("predict", "exchange", "x.csv"), "--model"),
        (("predict", "exchange", "x.csv"), "--map-by"),
        (("advise", "layout", "x.csv"), "--model"),
        (("advise", "pipeline", "--size", "1MiB"), "--level"),
        (("replay", "x.csv"), "--combine"),
        (("predict", "program", "rec"), "--map-by"),
        (("report", "run"), "--map-by"),
        (("measure", "pingpong"), "--print-script"),
        (("import", "osu", "x.txt"), "--level"),
        (("pattern", "halo", "--grid", "1x1x2"), "--rank-order"),
    ],
)
def test_another_value_is_refused_with_those_that_are_allowed(in_process, refused, arguments, option):
    refused(
        in_process(*arguments, option, "nonsense", check=False), f"'{option}': 'nonsense' is not", "see `earl"
    )


def test_values_are_completed():
    exchange = predict.command.commands["exchange"]
    (option,) = [one for one in exchange.params if "--model" in one.opts]
    context = exchange.make_context("exchange", [], resilient_parsing=True)
    assert [item.value for item in option.shell_complete(context, "sta")] == ["staircase"]


def test_every_item_of_a_list_is_checked_and_completed():
    methods = ListOf("single", "many", "stream")
    assert methods.value("many, single,many", "--methods") == ("many", "single")
    assert methods.value(None, "--methods") is None
    assert methods.complete("many,s") == ["many,single", "many,stream"]
    with pytest.raises(
        InputError, match=r"--methods has 'singel', did you mean single\? Give some of single"
    ):
        methods.value("many,singel", "--methods")
