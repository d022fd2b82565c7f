"""The suite `pipeline`: a buffer in partitions that become ready one after the other."""

from earlybird.data.errors import InputError
from earlybird.measure.groups import (
    MIB,
    Group,
    Options,
    Place,
    carried_bytes,
    levels_of,
    link_of,
    pair_layout,
    powers,
    refuse_large,
)

# The ways of `pipeline`: one message when all partitions are ready, and one message for each.
PIPELINE_WAYS = ("single", "many")
_PIPELINE_GAMMA_S_PER_BYTE = 100e-12  # that of figure 8 of Gillis et al. 2023
# The gamma*beta of that figure (beta = 25 GB/s): what gamma is chosen by where a link's beta is known.
_PIPELINE_GAMMA_BETA = 2.5
# A delay beyond this is a slip of units: a bare 100 is 100 s/B.
_PIPELINE_DELAY_S = 1.0


def pipeline_groups(options: Options, place: Place, mpi: str) -> list[Group]:
    """A buffer in partitions of which the last is late (Gillis et al. 2023, figure 3), on every level.

    The delay is gamma times the size of a partition; sizes are those of whole buffers. Where the rate of a
    link is known, gamma is chosen for it: that of a fast network would show nothing on a slow one.
    """
    result = []
    for level in levels_of(options, place):
        points = []
        for partitions in options.partitions or (4,):
            for size in options.sizes_bytes or _default_buffers(options, level, place, partitions):
                if size % partitions:
                    raise InputError(
                        f"--sizes has {size} bytes, which {partitions} partitions do not share evenly; "
                        f"give multiples of {partitions}, such as {max(size // partitions, 1) * partitions}"
                    )
                for gamma in options.gammas_s_per_byte or (_default_gamma(level, place),):
                    _refuse_long_delay(gamma, size // partitions)
                    points.append({"mpi": mpi, "level": level, "size_bytes": size, "partitions": partitions,
                                   "gamma_s_per_byte": gamma})  # fmt: skip
        refuse_large([point["size_bytes"] for point in points])
        layout, link = pair_layout(level, 1, place), link_of(level, place)
        result.append(Group("pipeline", layout, tuple(points), ways=PIPELINE_WAYS, link_bytes_per_s=link))
    return result


def _default_buffers(options: Options, level: str, place: Place, partitions: int) -> tuple[int, ...]:
    """From 1 KiB to 16 MiB, each cut to a multiple of `partitions`."""
    first, last, factor = (1 << 12, MIB, 16) if options.quick else (1 << 10, 16 * MIB, 4)
    sizes = powers(carried_bytes(last, level, place), factor, first)
    return tuple(dict.fromkeys(max(size // partitions, 1) * partitions for size in sizes))


def _default_gamma(level: str, place: Place) -> float:
    link = link_of(level, place)
    return _PIPELINE_GAMMA_S_PER_BYTE if link is None else _PIPELINE_GAMMA_BETA / link


def _refuse_long_delay(gamma_s_per_byte: float, partition_bytes: int) -> None:
    delay_s = gamma_s_per_byte * partition_bytes
    if delay_s > _PIPELINE_DELAY_S:
        raise InputError(
            f"a gamma of {gamma_s_per_byte:g} s/B makes a partition of {partition_bytes} bytes {delay_s:g} s "
            f"late; give a --gamma that makes it {_PIPELINE_DELAY_S:g} s at most, such as 100us/MB"
        )
