"""The command line of `measure`: a subcommand for each suite, with its own options, and one for several
suites."""

from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from earlybird.cli.options.command import example_text, make_command
from earlybird.cli.options.values import ListOf, OneOf
from earlybird.measure.groups import Suite
from earlybird.measure.options import SuiteOption
from earlybird.measure.suites import SUITES


class _SuiteGroup(TyperGroup):
    """A group that calls the subcommand of a suite, wherever its name is among the options, or `several`: for
    several suites, none, or an unknown one."""

    several: TyperCommand

    def make_context(self, info_name: Any, args: list[str], parent: Any = None, **extra: Any) -> Any:
        options = [option for option in self.several.params if not getattr(option, "is_flag", True)]
        with_value = {name for option in options for name in option.opts}
        places = {
            k for k, argument in enumerate(args)
            if not argument.startswith("-") and (k == 0 or args[k - 1] not in with_value)
        }  # fmt: skip
        known = {name for option in self.several.params for name in option.opts}
        # What follows a misspelt option may be its value; the command of the suite reports the option.
        places -= {
            k for k in places
            if k > 0 and args[k - 1].startswith("-") and args[k - 1] not in known
            and args[k] not in self.commands
        }  # fmt: skip
        named = {args[k] for k in places}
        if len(named) == 1 and named <= self.commands.keys():
            args = [*named, *(argument for k, argument in enumerate(args) if k not in places)]
        elif named or not {"-h", "--help"}.intersection(args):
            return self.several.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["SUITE...", "[OPTIONS]"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Suites, each with its own options: `earlybird measure SUITE --help`"):
            formatter.write_dl([(suite.name, suite.help) for suite in SUITES.values()])
        self.several.format_options(ctx, formatter)


def make_suite_group(measure: Callable[..., Any], *, examples: Sequence[str]) -> Any:
    """Make the command `measure` from the function measure(context, suites, of_suites, *, common options):
    `of_suites` are the values of the suites' options, by their keys in the settings of a run."""
    group = _SuiteGroup(
        name="measure", help=measure.__doc__, epilog=example_text(*examples),
        commands=[_command(measure, suite.takes, suite.example, suite) for suite in SUITES.values()],
        rich_markup_mode=None,
    )  # fmt: skip
    # It takes the options of every suite, hidden: they may be given with --resume, and are refused by name.
    options = {option.name: option for suite in SUITES.values() for option in suite.takes}
    del options["threads"]
    group.several = _command(measure, options.values(), examples[0])
    return group


def _command(
    measure: Callable[..., Any], options: Iterable[SuiteOption], example: str, suite: Suite | None = None
) -> Any:
    """Make the command of `suite`, or of several."""
    return make_own_command(
        measure,
        options,
        name=suite.name if suite else "measure",
        doc=f"The suite {suite.name}: {suite.help}" if suite else str(measure.__doc__),
        example=example,
        subject=[suite.name] if suite else None,
        arguments=[] if suite else [Parameter("suite", _KEYWORD, default=None, annotation=_SUITES)],
    )


def make_own_command(
    function: Callable[..., Any],
    options: Iterable[SuiteOption],
    *,
    name: str,
    doc: str,
    example: str | Sequence[str],
    subject: Any,
    arguments: Sequence[Parameter] = (),
) -> Any:
    """Return the command `name` with the options of one subject, and the common ones of `function`, which is
    called with the context, the subject and the values of `options` by their keys.

    Without a subject, it gets those of the argument `suite`, and the options are hidden.
    """
    common = {
        parameter.name: parameter
        for parameter in signature(function).parameters.values()
        if parameter.kind is _KEYWORD
    }
    own = {option.name.replace("-", "_"): option for option in options}

    def command(context: typer.Context, **given: Any) -> Any:
        chosen = given.pop("suite") or [] if subject is None else subject
        of_subject = {option.key: given.pop(name) for name, option in own.items()}
        return function(context, chosen, of_subject, **{name: given.get(name) for name in common})

    command.__doc__ = doc
    parameters = list(arguments)
    for option_name, option in own.items():
        # The run checks the choices, which it may also have from its folder.
        complete = ListOf(*option.choices).complete if option.choices else None
        declared = typer.Option(
            option.option, help=option.help, hidden=subject is None, autocompletion=complete
        )
        # Several suites may have options of one name with other values.
        values = [OneOf(*option.values)] if subject is not None and option.values else []
        annotation = Annotated[(option.type | None, declared, *values)]  # type: ignore[name-defined]
        parameters.append(Parameter(option_name, _KEYWORD, default=None, annotation=annotation))
    parameters += [parameter for common_name, parameter in common.items() if common_name not in own]
    context = Parameter("context", _KEYWORD, annotation=typer.Context)
    command.__signature__ = Signature([context, *parameters])  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in (context, *parameters)}
    return make_command(command, name=name, example=example)


def _suites_like(incomplete: str) -> list[tuple[str, str]]:
    return [(suite.name, suite.help) for suite in SUITES.values() if suite.name.startswith(incomplete)]


_KEYWORD = Parameter.KEYWORD_ONLY
_SUITES = Annotated[
    list[str] | None,
    typer.Argument(help=f"{', '.join(SUITES)}; none: list them.", autocompletion=_suites_like),
]
