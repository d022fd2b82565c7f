"""How much memory a process may still take."""

import os
import re
from pathlib import Path


def available_memory_bytes() -> int:
    """Memory that a new process could use without swapping."""
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        text = ""
    match = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
