"""Functions and lines of the source in a program or library, also those that the dynamic loader does not
know."""

import bisect
import ctypes
import errno
import os
import re
import stat
from collections.abc import Iterable
from functools import cache

from elftools.common.exceptions import DWARFError, ELFError
from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.dwarfinfo import DWARFInfo
from elftools.dwarf.lineprogram import LineProgram
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

_MAX_DEBUG_BYTES = 16 << 20
_MAX_INSIDE = 4  # labels of a function that are looked at


def function_names(path: str, offsets: Iterable[int]) -> dict[int, str]:
    """Return the function around each offset from the load address of the file; omit offsets in no function.

    The result is empty for a file that cannot be read, has no symbols, or is no ELF file.
    """
    try:
        with open(path, "rb", opener=_open_file) as stream:
            return _find(ELFFile(stream), offsets)
    except (OSError, ELFError, ValueError, KeyError):
        return {}


def _open_file(path: str, flags: int) -> int:
    """Open a regular file; a recording, which may come from others, could name a pipe or a device."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    return descriptor


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
        k = bisect.bisect_right(begins, address)
        # A label of an assembler may begin inside of a function, and end before the address.
        around = (
            one for one in reversed(functions[max(k - _MAX_INSIDE, 0) : k]) if address < one[0] + one[1]
        )
        if (function := next(around, None)) is not None:
            names[offset] = readable_name(function[2])
    return names


def source_lines(path: str, offsets: Iterable[int]) -> dict[int, tuple[str, int]]:
    """Return the file and the line of the source at each offset from the load address of the file; omit
    offsets without a line.

    The result is empty for a file that cannot be read or has no debug information.
    """
    try:
        with open(path, "rb", opener=_open_file) as stream:
            return _find_lines(ELFFile(stream), offsets)
    except (OSError, ELFError, DWARFError, ValueError, KeyError, AttributeError, IndexError):
        return {}


def _find_lines(elf: ELFFile, offsets: Iterable[int]) -> dict[int, tuple[str, int]]:
    if not elf.has_dwarf_info(strict=True):
        return {}
    loaded = [part["p_vaddr"] for part in elf.iter_segments("PT_LOAD")]
    first = min(loaded, default=0) // 4096 * 4096
    dwarf = elf.get_dwarf_info()
    addresses = {first + offset - 1: offset for offset in offsets}
    units = _units_of(dwarf, addresses)
    found: dict[int, tuple[str, int]] = {}
    for unit, of_unit in units:
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        before = None
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            if before is not None:
                for address in of_unit:
                    if before.address <= address < state.address and before.line:
                        found[addresses[address]] = (_file_name(program, before.file), before.line)
            before = None if state.end_sequence else state
    return found


def _units_of(dwarf: DWARFInfo, addresses: Iterable[int]) -> list[tuple[CompileUnit, list[int]]]:
    """Return the compile units that contain these addresses, by the table of ranges; by all units if there is
    none."""
    ranges = dwarf.get_aranges()
    if ranges is None:
        every = list(addresses)
        return [(unit, every) for unit in dwarf.iter_CUs()] if _is_small(dwarf) else []
    by_offset: dict[int, list[int]] = {}
    for address in addresses:
        if (offset := ranges.cu_offset_at_addr(address)) is not None:
            by_offset.setdefault(offset, []).append(address)
    return [(dwarf.get_CU_at(offset), of_unit) for offset, of_unit in by_offset.items()]


def _is_small(dwarf: DWARFInfo) -> bool:
    """Return whether the debug information is small enough: without a table of ranges all units are read,
    which takes minutes for some programs."""
    return dwarf.debug_info_sec is not None and dwarf.debug_info_sec.size <= _MAX_DEBUG_BYTES


def _file_name(program: LineProgram, number: int) -> str:
    """Return the name of a file by its number, which counts from 1 before version 5."""
    name = program["file_entry"][number - (program["version"] < 5)].name
    return name.decode(errors="replace")


def readable_name(symbol: str) -> str:
    """Return the name of a C++ function without its types: `solver::dot` for `_ZN6solver3dotIdEEvRKT_`; other
    names unchanged, also if no C++ library is installed."""
    demangle = _demangler() if symbol.startswith("_Z") else None
    if demangle is None:
        return symbol
    status = ctypes.c_int()
    text = demangle(symbol.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not text:
        return symbol
    return _without_types(text.decode(errors="replace"))


def _without_types(text: str) -> str:
    """Return `a::b` for `void a::b<int>(c<d>) const`."""
    text, num = text.replace("(anonymous namespace)::", "").replace("operator()", "operator call"), 1
    while num:  # the innermost first
        text, num = re.subn(r"<[^<>()]*>|\([^<>()]*\)", "", text)
    text = text.replace("operator call", "operator()")
    parts = re.sub(r"\b(const|volatile|\[clone[^\]]*\])", "", text).split()
    return parts[-1] if parts else text


@cache
def _demangler():
    """Return __cxa_demangle; None without the C++ library of GCC. Its results are never freed: they are
    few."""
    try:
        function = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_char_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    return function
