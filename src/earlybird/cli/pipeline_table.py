"""The table of the suite `pipeline`: time-to-solution and gain of each method."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from earlybird.compare.methods import paired_ratio
from earlybird.data import units
from earlybird.data.run import Sample, median_of_launches
from earlybird.models.pipelined import delay_rate_s_per_byte, large_message_gain

BULK = "single"
# Below this, equation (4) gives a gain of at most 1/40 with 4 partitions: less than launches differ.
_MIN_GAMMA_BETA = 0.1
_CLEAR_GAMMA_BETA = 2.5  # that of figure 8 of Gillis et al. 2023


def pipeline_values(samples: Sequence[Sample], bulk: Sequence[Sample]) -> dict[str, Any]:
    """Values of one method at one point: its gain over `bulk`, the samples of `single` at that point, and
    the gain by equation (4) of Gillis et al. 2023 at the bandwidth of `single`; None if `bulk` is empty.

    If all partitions are computed, gamma is that of equation (9).
    """
    config = samples[0].config
    size_bytes, partitions, threads = config["size_bytes"], config["partitions"], config.get("threads", 1)
    computation = _computation(config, partitions // threads)
    gamma = computation["gamma_s_per_byte"]
    beta = size_bytes / median_of_launches(bulk) if bulk else None
    ratio = paired_ratio(bulk, samples)
    return {
        "method": samples[0].method,
        "partitions": partitions,
        "threads": threads,
        "vcis": config.get("vcis"),
        **computation,
        "delay_s": gamma * (size_bytes // partitions),
        "gain": ratio and ratio.value,
        "gain_low": ratio and ratio.low,
        "gain_high": ratio and ratio.high,
        "gain_coverage": ratio and ratio.coverage,
        "bulk_bandwidth_bytes_per_s": beta,
        "gamma_beta": None if beta is None else gamma * beta,
        "gain_theory": None
        if beta is None
        else large_message_gain(threads, partitions // threads, gamma, beta),
    }


def _computation(config: Mapping[str, Any], partitions_per_thread: int) -> dict[str, float]:
    if "compute_s_per_byte" not in config:
        return {"gamma_s_per_byte": config["gamma_s_per_byte"]}
    mu, epsilon, delta = (config[key] for key in ("compute_s_per_byte", "epsilon", "delta"))
    gamma = delay_rate_s_per_byte(mu, partitions_per_thread, epsilon, delta)
    return {"gamma_s_per_byte": gamma, "compute_s_per_byte": mu, "epsilon": epsilon, "delta": delta}


def pipeline_order(row: dict[str, Any]) -> tuple:
    """Sort key: by point, then `single`, then the other methods by decreasing gain."""
    point = (*_point(row)[2:], row["method"] != BULK)
    return (*point, -(row["gain"] or 0.0))


def pipeline_table(
    rows: Sequence[dict[str, Any]], state: Callable[[dict[str, Any]], str]
) -> tuple[list[str], list[list[Any]]]:
    """Header and lines, in the order of `rows`; only the first line of a point has the values common to
    all its methods.

    Columns of threads and contexts are present if there is more than one thread, and if contexts are set.
    """
    threads = any(row["threads"] > 1 for row in rows)
    vcis = any(row["vcis"] is not None for row in rows)
    header = ["level", "size", *(["threads"] if threads else []), *(["VCIs"] if vcis else []), "partitions",
              "gamma", "gamma*beta", "equation (4)", "method", "time", "gain", "from", "to", "covers",
              "launches", "state"]  # fmt: skip
    lines, before = [], None
    for row in rows:
        first, before = _point(row) != before, _point(row)
        shared = [
            row["level"],
            units.format_bytes(row["size_bytes"]),
            *([row["threads"]] if threads else []),
            *(["" if row["vcis"] is None else row["vcis"]] if vcis else []),
            row["partitions"],
            f"{row['gamma_s_per_byte'] * 1e12:.6g} us/MB",
            _figure(row["gamma_beta"], ".2f"),
            _figure(row["gain_theory"], ".2f"),
        ]
        own = [row["method"], units.format_seconds(row["time_s"]), *_gain(row), row["launches"], state(row)]
        lines.append([*(shared if first else [""] * len(shared)), *own])
    return header, lines


def _point(row: dict[str, Any]) -> tuple:
    """The values common to all methods of a point."""
    return (
        row["level"], row["size_bytes"], row["threads"], row["vcis"] or 0, row["partitions"],
        row["gamma_s_per_byte"], row.get("compute_s_per_byte", -1.0),
    )  # fmt: skip


def _gain(row: dict[str, Any]) -> list[str]:
    """The gain columns; blank for `single`, the reference."""
    if row["method"] == BULK:
        return [""] * 4
    figures = [_figure(row[name], ".2f") for name in ("gain", "gain_low", "gain_high")]
    return [*figures, _figure(row["gain_coverage"], ".0%")]


def _figure(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def pipeline_remarks(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Lines to print below the table of `rows`."""
    methods = [row for row in rows if row["method"] != BULK]
    remarks = []
    if any(row["gain"] is not None for row in methods):
        remarks.append(
            "gain: speed-up over single, the median of the ratios of times measured alternately in one "
            "launch; the ratio of the two medians in the column time may differ"
        )
    for level in dict.fromkeys(row["level"] for row in methods):
        too_short = [row for row in methods if row["level"] == level and _has_short_delay(row)]
        if too_short:
            gamma = _CLEAR_GAMMA_BETA / max(row["bulk_bandwidth_bytes_per_s"] for row in too_short)
            remarks.append(
                f"{level}: if gamma*beta is below {_MIN_GAMMA_BETA:g}, the delay is too short to show a "
                f"gain; --gamma {_two_digits(gamma * 1e12):.0f}us/MB shows it"
            )
    return remarks


def _two_digits(value: float) -> float:
    return float(f"{value:.1e}")


def _has_short_delay(row: dict[str, Any]) -> bool:
    return row["gamma_beta"] is not None and 0 < row["gamma_beta"] < _MIN_GAMMA_BETA and row["partitions"] > 1
