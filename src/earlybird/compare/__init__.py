"""Compare measured with predicted times."""

from earlybird.compare.times import compare_times, measured_times

__all__ = ["compare_times", "measured_times"]
