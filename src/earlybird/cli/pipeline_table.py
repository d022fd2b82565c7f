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
