"""Compare measured with predicted times."""

from earlybird.compare.times import compare_times, exchange_samples, measured_times

__all__ = ["compare_times", "exchange_samples", "measured_times"]
