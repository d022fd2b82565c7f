"""Under what conditions a program was recorded: settings of the MPI, and the load of its nodes."""

from earlybird.data.recording import Recording


def conditions(recording: Recording, most: int | None = None) -> str:
    """Return the settings with their values, or which of them differ between ranks, and the highest load at
    the beginning; empty if nothing is known. After the first `most` settings, only the number of the others
    is given."""
    texts = []
    for name, values in recording.settings.items():
        value, ranks = next(iter(values.items()))
        is_of_all = len(values) == 1 and len(ranks) == len(recording.ranks)
        texts.append(f"{name}={value}" if is_of_all else f"{name} (differs between ranks)")
    if most is not None and len(texts) > most:
        texts = [*texts[:most], f"{len(texts) - most} more"]
    loads = [one.load[0] for one in recording.ranks.values() if one.load]
    if loads:
        texts.append(f"load {max(loads):g}")
    return ", ".join(texts)
