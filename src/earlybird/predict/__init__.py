"""Predict seconds per rank from a pattern, a profile and a layout."""

from earlybird.predict.default_model import ChosenModel, choose_model
from earlybird.predict.empty_exchange import over_empty_exchange
from earlybird.predict.exchange import (
    COMBINE,
    MIXED,
    SHARES,
    Predictor,
    predict_exchange,
    silent_senders,
)
from earlybird.predict.packing import Packing
from earlybird.predict.profiles import merge_profiles
from earlybird.predict.stages import one_after_the_other

__all__ = [
    "COMBINE", "MIXED", "SHARES", "ChosenModel", "Packing", "Predictor", "choose_model", "merge_profiles",
    "one_after_the_other", "over_empty_exchange", "predict_exchange", "silent_senders",
]  # fmt: skip
