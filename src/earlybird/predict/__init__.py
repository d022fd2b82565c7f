"""Predict seconds per rank from a pattern, a profile and a layout."""

from earlybird.predict.exchange import MIXED, MODELS, SHARES, Predictor, predict_exchange, silent_senders
from earlybird.predict.parts import BOTH_ENDS
from earlybird.predict.profiles import merge_profiles

__all__ = [
    "BOTH_ENDS", "MIXED", "MODELS", "SHARES", "Predictor", "merge_profiles", "predict_exchange",
    "silent_senders",
]  # fmt: skip
