"""What `measure` prints of the suite `pipeline`: the time-to-solution of each way and what it gains."""

from collections.abc import Sequence
from typing import Any

from earlybird.compare.ways import paired_ratio
from earlybird.data import units
from earlybird.data.run import Sample, median_of_launches
from earlybird.models.pipelined import large_message_gain

HEADER = (
    "level",
    "size",
    "partitions",
    "gamma",
    "way",
    "time",
    "gain",
    "from",
    "to",
    "covers",
    "equation (4)",
    "gamma*beta",
    "launches",
    "state",
)
BULK = "single"
# Below it equation (4) gives a fortieth at most with 4 partitions: within what launches differ by.
_FAINT_GAMMA_BETA = 0.1
_CLEAR_GAMMA_BETA = 2.5  # that of figure 8 of Gillis et al. 2023


def pipeline_values(samples: Sequence[Sample], bulk: Sequence[Sample]) -> dict[str, Any]:
    """Of one way at one point: its gain over `bulk`, the samples of `single` at that point, and the gain that
    equation (4) of Gillis et al. 2023 gives at the bandwidth of `single`; None where `bulk` is empty."""
    config = samples[0].config
    size_bytes, partitions, gamma = (config[key] for key in ("size_bytes", "partitions", "gamma_s_per_byte"))
    beta = size_bytes / median_of_launches(bulk) if bulk else None
    ratio = paired_ratio(bulk, samples)
    return {
        "way": samples[0].way,
        "partitions": partitions,
        "gamma_s_per_byte": gamma,
        "delay_s": gamma * (size_bytes // partitions),
        "gain": ratio and ratio.value,
        "gain_low": ratio and ratio.low,
        "gain_high": ratio and ratio.high,
        "gain_coverage": ratio and ratio.coverage,
        "bulk_bandwidth_bytes_per_s": beta,
        "gamma_beta": None if beta is None else gamma * beta,
        "gain_theory": None if beta is None else large_message_gain(1, partitions, gamma, beta),
    }


def pipeline_cells(row: dict[str, Any], state: str) -> list[Any]:
    """A line of the table, in the order of HEADER; what `single` says of itself is left blank."""
    bulk = row["way"] == BULK
    figures = dict.fromkeys(("gain", "gain_low", "gain_high"), ".2f") | {"gain_coverage": ".0%"}
    figures |= dict.fromkeys(("gain_theory", "gamma_beta"), ".2f")
    return [
        row["level"],
        units.format_bytes(row["size_bytes"]),
        row["partitions"],
        f"{row['gamma_s_per_byte'] * 1e12:.6g} us/MB",
        row["way"],
        units.format_seconds(row["time_s"]),
        *("" if bulk or row[name] is None else format(row[name], form) for name, form in figures.items()),
        row["launches"],
        state,
    ]


def pipeline_remarks(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What to know of the table of these rows, a line each, to be printed below it."""
    ways = [row for row in rows if row["way"] != BULK]
    remarks = []
    if any(row["gain"] is not None for row in ways):
        remarks.append(
            "gain: the median of the ratios, single over this way, of times taken in turn in one launch; "
            "the ratio of the two medians under time may differ"
        )
    for level in dict.fromkeys(row["level"] for row in ways):
        faint = [row for row in ways if row["level"] == level and _is_faint(row)]
        if faint:
            gamma = _CLEAR_GAMMA_BETA / max(row["bulk_bandwidth_bytes_per_s"] for row in faint)
            remarks.append(
                f"{level}: where gamma*beta is below {_FAINT_GAMMA_BETA:g} the delay is too short for a gain "
                f"to show; --gamma {_two_digits(gamma * 1e12):.0f}us/MB would show it"
            )
    return remarks


def _two_digits(value: float) -> float:
    return float(f"{value:.1e}")


def _is_faint(row: dict[str, Any]) -> bool:
    return (
        row["gamma_beta"] is not None and 0 < row["gamma_beta"] < _FAINT_GAMMA_BETA and row["partitions"] > 1
    )
