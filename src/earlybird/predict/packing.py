"""Predict what each rank spends on packing messages that it sends and unpacking those that it receives."""

from typing import NamedTuple

import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.labels import listed
from earlybird.data.methods import CACHES, LOOP_PACK, LOOP_UNPACK, PACK, PACKINGS, UNPACK
from earlybird.data.packing_form import PackingForm
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Profile
from earlybird.data.units import format_bytes

# Who moves the data: the methods of a form that pack and unpack.
PACKERS = {"mpi": (PACK, UNPACK), "loop": (LOOP_PACK, LOOP_UNPACK)}


class Packing(NamedTuple):
    """How the messages of an exchange are packed: the layout of their data, the caches, and by whom."""

    layout: str
    cache: str = CACHES[0]
    by: str = next(iter(PACKERS))

    def check(self) -> None:
        """Raise InputError for a value that is unknown."""
        for name, known in (("layout", PACKINGS), ("cache", CACHES), ("by", tuple(PACKERS))):
            given = getattr(self, name)
            if given not in known:
                raise InputError(f"the {name} of the packing is {given!r}; choose one of {', '.join(known)}")

    def to_json(self) -> dict[str, str]:
        """Return the keys of a prediction that say how messages are packed."""
        return {"packing": self.layout, "packing_cache": self.cache, "packing_by": self.by}


def packing_times_s(
    pattern: Pattern, num_ranks: int, profile: Profile, packing: Packing
) -> tuple[np.ndarray, list[str]]:
    """Return the (P,) seconds that each rank packs and unpacks, and a note on sizes that were not measured.

    A rank packs each message that it sends and unpacks each that it receives, one after the other. Raises
    InputError if the profile has no such costs.
    """
    packing.check()
    pack, unpack = _forms(profile, packing)
    spent_s = np.zeros(num_ranks)
    for form, ranks in ((pack, pattern.src), (unpack, pattern.dst)):
        spent_s += np.bincount(ranks, weights=form.times_s(pattern.bytes), minlength=num_ranks)
    measured = min(form.parameters.size_bytes[-1] for form in (pack, unpack))
    largest = int(pattern.bytes.max()) if pattern.num_messages else 0
    notes = []
    if largest > measured:
        notes.append(
            f"packing was measured up to {format_bytes(measured)}, but messages have up to "
            f"{format_bytes(largest)}; each of their bytes takes as long as one of the largest measured size"
        )
    return spent_s, notes


def _forms(profile: Profile, packing: Packing) -> tuple[PackingForm, PackingForm]:
    """Return what packing and unpacking cost."""
    by_key = {(form.what.packing, form.what.cache, form.what.method): form for form in profile.packings}
    pack, unpack = (by_key.get((packing.layout, packing.cache, method)) for method in PACKERS[packing.by])
    if pack is not None and unpack is not None:
        return pack, unpack
    name = f"the profile {profile.id or '(no id)'}"
    remedy = (
        "measure them with `earlybird measure packing -o packing`, and give that run to `earlybird fit` too"
    )
    if not by_key:
        raise InputError(f"{name} has no costs of packing; {remedy}")
    known = [
        " ".join((layout, cache, by))
        for layout in PACKINGS
        for cache in CACHES
        for by, methods in PACKERS.items()
        if all((layout, cache, method) in by_key for method in methods)
    ]
    has = listed(known) if known else "those of one direction only"
    raise InputError(
        f"{name} has no costs of packing and unpacking {packing.layout} data with {packing.cache} caches by "
        f"{packing.by}; it has {has}: choose of these, or {remedy}"
    )
