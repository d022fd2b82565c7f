"""A pattern, a profile and a layout to seconds per rank."""

from earlybird.predict.exchange import MODELS, Exchange, predict_exchange
from earlybird.predict.profiles import merge_profiles

__all__ = ["MODELS", "Exchange", "merge_profiles", "predict_exchange"]
