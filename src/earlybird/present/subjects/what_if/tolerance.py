"""What an exchange tolerates, as parts of the chapter on exchanges."""

from earlybird.data import labels
from earlybird.data.layout import level_phrase
from earlybird.data.tolerance import BANDWIDTH, Tolerance, ToleranceCurve, growth_text
from earlybird.present.core.parts import Answer


def tolerance_sentence(found: Tolerance, name: str) -> str:
    """The parameter that the exchange tolerates least."""
    what = f"The exchange ({name})" if name else "The exchange"
    growth = max(found.growths, default=0.0)
    curve = found.most_critical(growth)
    if curve is None:
        return f"{what} takes the same time with any latency and bandwidth that was tried."
    return (
        f"{what} depends most on the {curve.name}: with {_limit(curve, growth)} instead of "
        f"{curve.value_text()} it takes {growth_text(growth)} longer by the {found.model} model."
    )


def tolerance_answer(found: Tolerance, name: str) -> Answer | None:
    """The same for the first screen; None if nothing matters."""
    growth = max(found.growths, default=0.0)
    curve = found.most_critical(growth)
    if curve is None:
        return None
    means = "bytes" if curve.parameter == BANDWIDTH else "messages"
    return Answer(
        f"What the exchange tolerates {name}".rstrip(),
        _limit(curve, growth),
        "",
        f"{labels.capital(curve.name)} at which the exchange takes {growth_text(growth)} longer than with "
        f"{curve.value_text()}; it tolerates the other parameters better.",
        f"send fewer {means} {level_phrase(curve.level)}",
    )


def _limit(curve: ToleranceCurve, growth: float) -> str:
    return curve.value_text(curve.factor_at(growth) or 1.0)
