"""The moments of the partitions in a sample of the kernel `partitioned`."""

from dataclasses import dataclass

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.run import Sample


@dataclass(frozen=True)
class PartitionMoments:
    """The moments of I iterations with n partitions, in seconds since rank 0's start, on its clock.

    Attributes
    ----------
    ready_s : (I, n) time when MPI_Pready is called; for one message, when it is sent after the join.
    returned_s : (I, n) time when that call has returned.
    arrived_s : (I, n) time when the receiver has the partition.
    joined_s : (I,) time when the computing threads have joined.
    completed_s : (I,) time when the receive is complete.
    compute_s : (I, T) drawn computation time of each thread.
    """

    ready_s: np.ndarray
    returned_s: np.ndarray
    arrived_s: np.ndarray
    joined_s: np.ndarray
    completed_s: np.ndarray
    compute_s: np.ndarray

    @classmethod
    def of(cls, sample: Sample) -> "PartitionMoments":
        """Return the moments of the iterations after the warm-up; raise InputError for invalid ones, Unknown
        if the sample does not say how many partitions and threads it has."""
        num_iterations, num_partitions = len(sample.times_s), sample.config["partitions"]
        shapes = {
            "ready_s": (num_iterations, num_partitions),
            "returned_s": (num_iterations, num_partitions),
            "arrived_s": (num_iterations, num_partitions),
            "joined_s": (num_iterations,),
            "completed_s": (num_iterations,),
            "compute_s": (num_iterations, sample.config["threads"]),
        }
        found = {}
        for key, shape in shapes.items():
            try:
                values = np.array(sample.extra.get(key), dtype=float)
            except (TypeError, ValueError):
                values = np.array(np.nan)
            if values.shape != shape or not np.isfinite(values).all():
                raise InputError(
                    f"the sample of {sample.method} in launch {sample.launch} has no valid {key}: it must "
                    f"hold numbers of the shape {shape}; measure again with `earlybird measure partitioned`"
                )
            found[key] = values[sample.warmup :]
        return cls(**found)
