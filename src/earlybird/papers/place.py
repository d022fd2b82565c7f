"""The place at which the measurements of a paper are made."""

from earlybird.data.errors import InputError
from earlybird.measure.groups import Options, Resources, levels_of


def outermost_level(options: Options, resources: Resources) -> str:
    """Return the requested level, or the outermost; most papers measure between nodes."""
    levels = levels_of(options, resources)
    if options.levels is not None and len(levels) > 1:
        raise InputError(
            f"--levels has {', '.join(levels)}, and the figures are measured at one level; give one of them"
        )
    return levels[-1]
