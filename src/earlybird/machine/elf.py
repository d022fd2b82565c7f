"""Reads an ELF file: its loader, the libraries it needs, whether it defines a symbol.

`earlybird exec` asks this of a program each time it starts one; a library that knows all of ELF takes longer
to import than everything else that `exec` does.
"""

import mmap
import os
import re
import struct
from collections import namedtuple
from collections.abc import Iterator

_ET_EXEC, _ET_DYN = 2, 3
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_FLAGS_1 = 1, 5, 0x6FFFFFFB
_DF_1_PIE = 0x08000000
_SHT_SYMTAB, _SHT_DYNSYM = 2, 11


class Elf(namedtuple("Elf", "interpreter needs")):
    """An ELF file that can be started.

    Attributes
    ----------
    interpreter : the path of its dynamic loader; None in a static program.
    needs : the names of the shared libraries that it was linked with, in that order.
    """


class _Image:
    """The bytes of a file, and the format of its numbers."""

    def __init__(self, data: mmap.mmap) -> None:
        if data[:5] != b"\x7fELF\x02" or data[5] not in (1, 2):
            raise ValueError("not an ELF file of 64 bits")
        self.data = data
        self._order = "<" if data[5] == 1 else ">"

    def unpack(self, form: str, at: int) -> tuple[int, ...]:
        return struct.unpack_from(self._order + form, self.data, at)

    def rows(self, form: str, at: int, size_bytes: int) -> Iterator[tuple[int, ...]]:
        size_bytes -= size_bytes % struct.calcsize("<" + form)
        if at + size_bytes > len(self.data):
            raise ValueError("the file is cut short")
        return struct.iter_unpack(self._order + form, self.data[at : at + size_bytes])

    def text(self, at: int) -> str:
        end = self.data.find(b"\0", at)
        if end < 0:
            raise ValueError("a text without an end")
        return os.fsdecode(self.data[at:end])


def read_elf(path: str | os.PathLike[str]) -> Elf | None:
    """Return the headers of the program at `path`; None for any other file, including a shared library."""
    return _with_image(path, _read)


def defines(path: str | os.PathLike[str], symbol: str) -> bool:
    """Return whether `symbol` is defined in the ELF file at `path`, not merely referred to."""
    return bool(_with_image(path, lambda image: _defines(image, symbol.encode())))


def _with_image(path, ask):
    try:
        with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return ask(_Image(data))
    except (OSError, ValueError, IndexError, struct.error):  # not there, empty, no ELF, or cut short
        return None


def _read(image: _Image) -> Elf | None:
    (kind,) = image.unpack("H", 16)
    if kind not in (_ET_EXEC, _ET_DYN):
        return None
    (headers_at,), (header_bytes, num_headers) = image.unpack("Q", 32), image.unpack("HH", 54)
    loads, dynamic, interpreter = [], [], None
    for k in range(num_headers):
        part, _, at, address, _, file_bytes = image.unpack("IIQQQQ", headers_at + k * header_bytes)
        if part == _PT_LOAD:
            loads.append((address, at, file_bytes))
        elif part == _PT_INTERP:
            interpreter = image.text(at)
        elif part == _PT_DYNAMIC:
            dynamic = list(image.rows("QQ", at, file_bytes))
    # A static program that may be loaded anywhere differs from a library by a flag alone.
    is_pie = any(tag == _DT_FLAGS_1 and value & _DF_1_PIE for tag, value in dynamic)
    if interpreter is None and kind == _ET_DYN and not is_pie:
        return None
    needed = [value for tag, value in dynamic if tag == _DT_NEEDED]
    names = [
        at + value - address
        for tag, value in dynamic
        for address, at, size_bytes in loads
        if tag == _DT_STRTAB and address <= value < address + size_bytes
    ]
    return Elf(interpreter, tuple(image.text(names[0] + value) for value in needed))


def _defines(image: _Image, symbol: bytes) -> bool:
    if image.data.find(symbol + b"\0") < 0:
        return False
    (sections_at,), (section_bytes, num_sections) = image.unpack("Q", 40), image.unpack("HH", 58)
    sections = [image.unpack("IIQQQQII", sections_at + k * section_bytes) for k in range(num_sections)]
    for _, kind, _, _, at, size_bytes, link, _ in sections:
        if kind in (_SHT_SYMTAB, _SHT_DYNSYM):
            names = image.data[sections[link][4] : sections[link][4] + sections[link][5]]
            # Linkers let MPI_Init be the end of PMPI_Init: a symbol's name begins anywhere in the names.
            places = {found.start() for found in re.finditer(re.escape(symbol) + b"\0", names)}
            if any(row[0] in places and row[3] for row in image.rows("IBBHQQ", at, size_bytes)):
                return True
    return False
