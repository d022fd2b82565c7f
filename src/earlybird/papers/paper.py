"""The record of a paper: what it printed, the measurements that repeat it, and its page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from earlybird.data.layout import Layout
from earlybird.data.pattern import Pattern
from earlybird.measure.groups import Group, Options, Resources
from earlybird.measure.options import SuiteOption
from earlybird.present.core.parts import Chapter
from earlybird.present.material import Material

NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Row:
    """A value that a paper printed, next to what was measured or computed here.

    Attributes
    ----------
    figure : the figure, table or section that has it.
    quantity : description of the value, with the conditions of the paper.
    paper : the printed value.
    here : the value here as text; "" if there is none.
    note : difference from the paper, or the reason why there is no value here and the way to get one.
    mpi : display name of the measured MPI; "" for values computed from formulas, or not measured.
    """

    figure: str
    quantity: str
    paper: str
    here: str = ""
    note: str = ""
    mpi: str = ""

    def to_json(self) -> dict[str, str]:
        return dict(vars(self))


@dataclass(frozen=True)
class Step:
    """Measurements in one run folder, of this `name`.

    Attributes
    ----------
    exchange : the pattern and layout of a replay, which is compared with predictions of the fitted profile.
    is_fitted : whether a profile is fitted to the samples.
    share : share of the time for one MPI.
    """

    name: str
    groups: Sequence[Group]
    exchange: tuple[Pattern, Layout] | None = None
    is_fitted: bool = False
    share: float = 1.0


@dataclass(frozen=True)
class Paper:
    """A paper whose measurements `earlybird reproduce` repeats.

    Attributes
    ----------
    name : the name in `earlybird reproduce`.
    figures : its figures and tables, and the content of each.
    takes : the options of its plan.
    budgets_s : the default time for one MPI, without and with --quick.
    plan : (options, resources, MPI) -> the steps.
    remarks : (options, resources) -> how the measurements differ from those of the paper, in sentences.
    rows : every value that the paper printed, next to those of the material.
    legend : the meaning of the values of the table, beyond their columns.
    chapter : its page in a report; without a sentence if the material has no run that reproduces it.
    """

    name: str
    title: str
    authors: str
    year: int
    figures: Mapping[str, str]
    takes: tuple[SuiteOption, ...]
    budgets_s: tuple[float, float]
    plan: Callable[[Options, Resources, str], list[Step]]
    remarks: Callable[[Options, Resources], list[str]]
    rows: Callable[[Material], list[Row]]
    chapter: Callable[[Material], Chapter]
    legend: str = ""

    @property
    def citation(self) -> str:
        """The citation, such as `Gillis et al. 2023`."""
        return f"{self.authors} {self.year}" if self.year else self.authors
