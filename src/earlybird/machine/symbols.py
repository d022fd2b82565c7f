"""Names of the functions in a program or library, also of those that the dynamic loader does not know."""

import bisect
from collections.abc import Iterable

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection


def function_names(path: str, offsets: Iterable[int]) -> dict[int, str]:
    """The function around each offset from where the file is loaded; offsets in none are left out.

    Empty for a file that cannot be read, has no symbols, or is no ELF file.
    """
    try:
        with open(path, "rb") as stream:
            return _find(ELFFile(stream), offsets)
    except (OSError, ELFError, ValueError, KeyError):
        return {}


def _find(elf: ELFFile, offsets: Iterable[int]) -> dict[int, str]:
    loaded = [part["p_vaddr"] for part in elf.iter_segments("PT_LOAD")]
    first = min(loaded, default=0) // 4096 * 4096
    table = elf.get_section_by_name(".symtab") or elf.get_section_by_name(".dynsym")
    if not isinstance(table, SymbolTableSection):
        return {}
    functions = sorted(
        (symbol["st_value"], symbol["st_size"], symbol.name)
        for symbol in table.iter_symbols()
        if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_value"]
    )
    begins = [begin for begin, _, _ in functions]
    names = {}
    for offset in offsets:
        address = first + offset - 1  # of the call: the offset is that of the place it returns to
        k = bisect.bisect_right(begins, address) - 1
        if k >= 0 and address < functions[k][0] + functions[k][1]:
            names[offset] = functions[k][2]
    return names
