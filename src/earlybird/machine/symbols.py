"""Names of the functions in a program or library, also of those that the dynamic loader does not know."""

import bisect
import ctypes
import re
from collections.abc import Iterable
from functools import cache

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
            names[offset] = readable_name(functions[k][2])
    return names


def readable_name(symbol: str) -> str:
    """The name of a C++ function without its types: `solver::dot` for `_ZN6solver3dotIdEEvRKT_`; others as
    they are, also where no C++ library is installed."""
    demangle = _demangler() if symbol.startswith("_Z") else None
    if demangle is None:
        return symbol
    status = ctypes.c_int()
    text = demangle(symbol.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not text:
        return symbol
    return _without_types(text.decode(errors="replace"))


def _without_types(text: str) -> str:
    """`void a::b<int>(c<d>) const` -> `a::b`."""
    text, num = text.replace("(anonymous namespace)::", "").replace("operator()", "operator call"), 1
    while num:  # the innermost first
        text, num = re.subn(r"<[^<>()]*>|\([^<>()]*\)", "", text)
    text = text.replace("operator call", "operator()")
    parts = re.sub(r"\b(const|volatile|\[clone[^\]]*\])", "", text).split()
    return parts[-1] if parts else text


@cache
def _demangler():
    """__cxa_demangle; None without the C++ library of GCC. Its results are never freed: they are few."""
    try:
        function = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_char_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    return function
