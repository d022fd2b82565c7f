"""Finds samples whose clock residual is large compared with their time."""

from collections.abc import Sequence

from earlybird.data.run import Sample
from earlybird.data.units import format_bytes, format_seconds

# Largest residual, as a share of a time that is compared with others.
SMALL_SHARE = 0.05


def residual_s(sample: Sample) -> float | None:
    """Return the largest difference between the clocks behind a sample's times; None if every time uses a
    single clock."""
    value = sample.extra.get("clock_residual_s")
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def doubtful(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples whose clock residual is more than SMALL_SHARE of their time."""
    return [
        sample for sample in samples if (residual_s(sample) or 0.0) > SMALL_SHARE * abs(sample.median_s())
    ]


def doubt(samples: Sequence[Sample]) -> str | None:
    """Return one sentence, without a full stop, about the doubtful samples; None if there are none."""
    in_doubt = doubtful(samples)
    if not in_doubt:
        return None
    sizes_bytes: dict[str, list[int]] = {}
    for sample in in_doubt:
        sizes = sizes_bytes.setdefault(sample.kernel, [])
        if isinstance(size := sample.config.get("size_bytes"), int):
            sizes.append(size)
    names = [
        f"{kernel} up to {format_bytes(max(sizes))}" if sizes else kernel
        for kernel, sizes in sizes_bytes.items()
    ]
    apart_s = max(residual_s(sample) or 0.0 for sample in in_doubt)
    return (
        f"clocks of different nodes differ by up to {format_seconds(apart_s)}, more than "
        f"{100 * SMALL_SHARE:g} % of the time of {len(in_doubt)} samples, so figures of "
        f"{' and '.join(names)} are doubtful"
    )
