"""The kinds of JSON files that earlybird writes: how each is read, printed, and put into a report.

Modules are named, and imported only where they are needed: all together, they take a second.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class FileKind:
    """The kind of the files of one schema.

    Attributes
    ----------
    noun : the name of such a file for users.
    reader : `module:function` of `data`, called with the JSON object and where it comes from.
    printer : `module:function` of `present.subjects`, called with what was read and the format.
    part : the part of a report's material to which it belongs; "" if a report has no chapter on it.
    has_testcases : whether it can be printed as JUnit's testcases.
    """

    noun: str
    reader: str
    printer: str
    part: str = ""
    has_testcases: bool = False

    def read(self, value: Mapping[str, Any], path: Path) -> Any:
        """Return the record of a file; raise InputError if a part of it is missing or wrong."""
        return _function("data", self.reader)(value, f"the file {path}")

    def show(self, item: Any, format: str) -> None:
        """Print the record of a file, in a format of `earlybird show`."""
        _function("present.subjects", self.printer)(item, format)


def _function(package: str, name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    named: Callable[..., Any] = getattr(import_module(f"earlybird.{package}.{module}"), function)
    return named


_KINDS = {
    "profile": FileKind(
        "profile", "profile:profile_from_json", "messages.terminal:print_profile", "profiles"
    ),
    "prediction": FileKind(
        "prediction", "prediction:prediction_from_json", "exchange.terminal:print_prediction", "predictions"
    ),
    "tolerance": FileKind(
        "prediction", "tolerance:tolerance_from_json", "what_if.terminal:print_tolerance", "tolerances"
    ),
    "node-counts": FileKind(
        "prediction",
        "node_counts:node_counts_from_json",
        "what_if.terminal:print_node_counts",
        "node_counts",
    ),
    "pipeline-prediction": FileKind(
        "prediction",
        "method_predictions:pipeline_prediction_from_json",
        "pipelines.terminal:print_pipeline_prediction",
    ),
    "collective-prediction": FileKind(
        "prediction",
        "method_predictions:collective_prediction_from_json",
        "collectives.terminal:print_collective_prediction",
    ),
    "comparison": FileKind(
        "comparison",
        "comparison:comparison_from_json",
        "exchange.terminal:print_comparison_of_file",
        "comparisons",
    ),
    "check": FileKind("check", "check:check_from_json", "check.terminal:print_check", "checks", True),
    "baseline": FileKind("baseline", "baseline:baseline_from_json", "changes.terminal:print_baseline"),
    "history": FileKind(
        "history", "history:history_from_json", "changes.terminal:print_history", "histories"
    ),
    "run-comparison": FileKind(
        "comparison",
        "run_comparison:run_comparison_from_json",
        "changes.terminal:print_run_comparison",
        "run_comparisons",
        True,
    ),
    "guidelines": FileKind(
        "guidelines",
        "guidelines:guidelines_from_json",
        "guidelines.terminal:print_guidelines",
        "guidelines",
        True,
    ),
    "advice": FileKind("advice", "advice:advice_from_json", "advice.terminal:print_advice", "advice"),
    "collectives-advice": FileKind(
        "advice",
        "advice:collectives_advice_from_json",
        "advice.terminal:print_collectives_advice",
        "advice",
    ),
    "projection": FileKind(
        "projection", "projection:projection_from_json", "program.projected:print_projection"
    ),
    "simulated-program": FileKind(
        "simulation",
        "simulated_program:simulated_program_from_json",
        "program.simulated:print_simulated_program",
        "simulations",
    ),
}
KINDS: Mapping[str, FileKind] = {f"earlybird.{name}/1": kind for name, kind in _KINDS.items()}


def kind_of(schema: object) -> FileKind | None:
    """Return the kind of files with this schema; None if this version does not know it."""
    return KINDS.get(schema) if isinstance(schema, str) else None


def nouns(kinds: Sequence[FileKind]) -> str:
    """Return `a profile, prediction or check`."""
    *names, last = dict.fromkeys(kind.noun for kind in kinds)
    return f"{', '.join(names)} or {last}"
