"""Find which delays of pipelines are too short to show a speed-up."""

from collections.abc import Iterable

from earlybird.data.methods import SINGLE
from earlybird.data.results import Result

# Below this, equation (4) gives a speed-up of at most 1/40 with 4 partitions: less than launches differ.
_MIN_GAMMA_BETA = 0.1
_CLEAR_GAMMA_BETA = 2.5  # that of figure 8 of Gillis et al. 2023


def longer_delay_rates(results: Iterable[Result]) -> dict[str, float]:
    """Return a delay rate (s/B) that shows a speed-up, for every level with delays that are too short."""
    bandwidths: dict[str, list[float]] = {}
    for result in results:
        if result.method != SINGLE and _has_short_delay(result):
            bandwidth = result.figures["single_bandwidth_bytes_per_s"]
            bandwidths.setdefault(result.config["level"], []).append(bandwidth)
    return {level: _CLEAR_GAMMA_BETA / max(of_level) for level, of_level in bandwidths.items()}


def _has_short_delay(result: Result) -> bool:
    if "partitions" not in result.config or not result.figures:
        return False
    beta = result.figures["single_bandwidth_bytes_per_s"]
    gamma = result.figures["delay_rate_s_per_byte"]
    return bool(beta) and 0 < gamma * beta < _MIN_GAMMA_BETA and result.config["partitions"] > 1
