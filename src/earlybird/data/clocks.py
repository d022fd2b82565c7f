"""Which figures the clocks of several nodes leave in doubt."""

from collections.abc import Sequence

from earlybird.data.run import Sample
from earlybird.data.units import format_bytes, format_seconds

# What a residual may be of a time that is compared with others.
SMALL_SHARE = 0.05


def residual_s(sample: Sample) -> float | None:
    """How far the clocks behind a sample's times may be apart; None where one clock was read, or several
    that nothing was compared between."""
    value = sample.extra.get("clock_residual_s")
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def doubtful(samples: Sequence[Sample]) -> list[Sample]:
    """The samples whose time the residual of their clocks is no small share of."""
    return [
        sample for sample in samples if (residual_s(sample) or 0.0) > SMALL_SHARE * abs(sample.median_s())
    ]


def doubt(samples: Sequence[Sample]) -> str | None:
    """One sentence, without its full stop, naming the figures in doubt; None where there are none."""
    found = doubtful(samples)
    if not found:
        return None
    sizes_bytes: dict[str, list[int]] = {}
    for sample in found:
        sizes = sizes_bytes.setdefault(sample.kernel, [])
        if isinstance(size := sample.config.get("size_bytes"), int):
            sizes.append(size)
    names = [
        f"{kernel} up to {format_bytes(max(sizes))}" if sizes else kernel
        for kernel, sizes in sizes_bytes.items()
    ]
    apart_s = max(residual_s(sample) or 0.0 for sample in found)
    return (
        f"clocks of different nodes were found up to {format_seconds(apart_s)} apart, more than "
        f"{100 * SMALL_SHARE:g} % of the time of {len(found)} samples, so that figures of "
        f"{' and '.join(names)} are doubtful"
    )
