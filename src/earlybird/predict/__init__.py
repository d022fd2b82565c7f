"""Predict seconds per rank from a pattern, a profile and a layout."""

from earlybird.predict.empty_exchange import over_empty_exchange
from earlybird.predict.exchange import (
    COMBINE,
    MIXED,
    MODELS,
    SHARES,
    Predictor,
    predict_exchange,
    silent_senders,
)
from earlybird.predict.parts import BOTH_ENDS
from earlybird.predict.profiles import merge_profiles
from earlybird.predict.stages import one_after_the_other

__all__ = [
    "BOTH_ENDS", "COMBINE", "MIXED", "MODELS", "SHARES", "Predictor", "merge_profiles", "one_after_the_other",
    "over_empty_exchange", "predict_exchange", "silent_senders",
]  # fmt: skip
