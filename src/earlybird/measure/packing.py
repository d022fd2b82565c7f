"""The suite `packing`: the cost of gathering irregular data into a message, and of scattering it."""

from earlybird.data import units
from earlybird.data.errors import InputError
from earlybird.data.kernels import PACKING
from earlybird.data.layout import parse_layout
from earlybird.data.methods import CACHES, PACKING_METHODS, PACKINGS
from earlybird.data.units import shortened
from earlybird.measure.groups import MIB, Group, Options, Resources, powers
from earlybird.measure.options import Parser, SuiteOption, listed, sizes_option

_ELEMENT_BYTES = 8  # of a double, which all layouts are made of
_LARGEST_BYTES = 256 * MIB  # of packed data; strided data take eight times as much


def _choices(option: str, known: tuple[str, ...]) -> Parser:
    def parse(item: str) -> str:
        if item not in known:
            raise InputError(f"{option} has {shortened(item)}; give some of {', '.join(known)}")
        return item

    return listed(parse)


PACKING_OPTIONS = (
    sizes_option("64 B to 4 MiB", "packed data, multiples of 8 bytes"),
    SuiteOption("packing", f"Layouts of the data: some of {', '.join(PACKINGS)}.  [default: all]", "packings",
                _choices("--packing", PACKINGS)),
    SuiteOption("methods", f"Some of {', '.join(PACKING_METHODS)}.  [default: all]", "methods",
                _choices("--methods", PACKING_METHODS)),
    SuiteOption("cache", f"Caches: {' or '.join(CACHES)}, or both.  [default: {','.join(CACHES)}]", "caches",
                _choices("--cache", CACHES)),
)  # fmt: skip


def packing_groups(options: Options, resources: Resources, mpi: str) -> list[Group]:
    """Return every layout with hot and cold caches, on one rank: no message is sent."""
    if options.launcher_threads > 1:
        raise InputError(
            f"--threads is {options.launcher_threads} and packing measures one thread; leave --threads out"
        )
    sizes = options.sizes_bytes or powers(4 * MIB, 256 if options.quick else 16, 64)
    for size in sizes:
        if size < _ELEMENT_BYTES or size % _ELEMENT_BYTES or size > _LARGEST_BYTES:
            raise InputError(
                f"--sizes has {size} bytes; packing takes doubles: give multiples of {_ELEMENT_BYTES}, at "
                f"most {units.format_bytes(_LARGEST_BYTES)}"
            )
    points = tuple(
        {"mpi": mpi, "size_bytes": size, "packing": packing, "cache": cache}
        for packing in options.packings or PACKINGS
        for cache in options.caches or CACHES
        for size in sizes
    )
    methods = tuple(options.methods or PACKING_METHODS)
    return [Group(PACKING.name, parse_layout("1x1x1"), points, methods=methods, flush_s=resources.flush_s)]
