"""The chapter on the errors of the predictions of exchanges."""

from collections.abc import Sequence

from earlybird.data import labels
from earlybird.present import commands
from earlybird.present.core.parts import Answer, Chapter
from earlybird.present.material import Material
from earlybird.present.subjects.exchange.chapter import arguments, named
from earlybird.present.subjects.exchange.figures import scatter_figure
from earlybird.present.subjects.exchange.tables import error_table
from earlybird.present.subjects.exchange.view import Exchange

ID = "accuracy"
QUESTION = "How far off was the prediction?"
ERROR_MEANS = (
    "The relative error is the sum over ranks of |measured - predicted| divided by the sum of measured, "
    "equation (11) of Thune et al. 2023. The error of the slowest rank is (largest predicted - largest "
    "measured) / largest measured: it is the error of the time of the whole exchange."
)


def accuracy_chapter(all_exchanges: Sequence[Exchange], material: Material) -> Chapter:
    compared = [item for item in all_exchanges if item.error]
    if not compared:
        replay = commands.replay(*arguments(all_exchanges, material))
        return Chapter(ID, QUESTION, "", absent=[("To compare a prediction with a measurement, run", replay)])
    errors = [error_table(item) for item in compared]
    return Chapter(
        ID,
        QUESTION,
        " ".join(_sentence(item) for item in compared),
        [ERROR_MEANS],
        answers=[_answer(item, material) for item in compared],
        figures=[
            named(scatter_figure(item, f"scatter-{k}"), item)
            for k, item in enumerate(all_exchanges)
            if item.error
        ],
        shown=errors,
        brief=errors,
    )


def _answer(item: Exchange, material: Material) -> Answer:
    best = item.best_first()[0]
    return Answer(
        f"Prediction {item.name}".rstrip(),
        labels.percent(item.error[best]),
        "",
        f"Relative error of the {best} model, the most accurate; it predicts the time of the slowest rank "
        f"{_slowest_text(item, best)}.",
        f"predict with `{commands.predict(*arguments([item], material), best)}`",
    )


def _slowest_text(item: Exchange, model: str) -> str:
    slowest = item.slowest_error[model]
    if slowest == 0:
        return "without error"
    return f"{labels.percent(abs(slowest))} too {'high' if slowest > 0 else 'low'}"


def _sentence(item: Exchange) -> str:
    best = item.best_first()[0]
    subject = f"{item.name}: the" if item.name else "The"
    doubts = ["with more ranks than cores"] if item.oversubscribed and not item.link_limited else []
    doubts += [f"at a load of {item.load:.1f}"] if item.load is not None else []
    others = [f"{model}: {labels.percent(item.error[model])}" for model in item.best_first()[1:]]
    remarks = [f"measured {labels.listed(doubts)}"] * bool(doubts) + [", ".join(others)] * bool(others)
    remark = f" ({'; '.join(remarks)})" if remarks else ""
    return (
        f"{subject} {best} model is the most accurate: its relative error is "
        f"{labels.percent(item.error[best])}{remark}, and it predicts the time of the slowest rank "
        f"{_slowest_text(item, best)}."
    )
