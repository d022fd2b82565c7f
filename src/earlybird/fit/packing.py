"""Tables of what packing costs, by layout, caches and method, from samples."""

from collections.abc import Iterable

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.packing_form import Packed, PackingForm, PackingTimes
from earlybird.data.run import Run, Sample


def packing_forms(samples: Iterable[tuple[Run, Sample]]) -> list[PackingForm]:
    """Return a form for every layout, cache and method; times are medians over iterations, then over
    launches.
    """
    times_s: dict[tuple[str, str, str], dict[int, list[float]]] = {}
    for run, sample in samples:
        config = sample.config
        key = config["packing"], config["cache"], sample.method or ""
        if not config["size_bytes"] or None in key or not key[-1]:
            raise InputError(
                f"{run.path}: a packing sample says packing={key[0]} cache={key[1]} method={sample.method} "
                f"size_bytes={config['size_bytes']}; sizes are at least 8 bytes: measure again"
            )
        times_s.setdefault(key, {}).setdefault(config["size_bytes"], []).append(sample.median_s())
    return [
        PackingForm(
            what=Packed(packing=packing, cache=cache, method=method),
            parameters=PackingTimes(
                size_bytes=tuple(sorted(by_size)),
                time_s=tuple(float(np.median(by_size[size])) for size in sorted(by_size)),
            ),
        )
        for (packing, cache, method), by_size in sorted(times_s.items())
    ]
