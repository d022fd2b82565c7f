"""Measure, model, predict and replay MPI communication.

What is listed in `__all__` is the public interface, described in docs/python.md; all other names may change.
"""

TYPE_CHECKING = False  # as of typing, whose import takes longer than all else before Ctrl-C is handled
if TYPE_CHECKING:
    from typing import Any

    from earlybird.data.errors import EarlybirdError, InputError
    from earlybird.data.layout import Layout
    from earlybird.data.pattern import Pattern
    from earlybird.data.prediction import Prediction
    from earlybird.data.profile import Profile
    from earlybird.data.run import Run
    from earlybird.predict.exchange import Predictor

__version__ = "0.1.0"
__all__ = ["EarlybirdError", "InputError", "Layout", "Pattern", "Prediction", "Predictor", "Profile", "Run"]

# Imported on demand: numpy and scipy take longer to import than many commands take to run.
_MODULES = {
    "EarlybirdError": "data.errors", "InputError": "data.errors", "Layout": "data.layout",
    "Pattern": "data.pattern", "Prediction": "data.prediction", "Predictor": "predict.exchange",
    "Profile": "data.profile", "Run": "data.run",
}  # fmt: skip


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
