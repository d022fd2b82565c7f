"""Makes profiles of a published table of fitted parameters, one for each CPU."""

import re
from pathlib import Path

from earlybird.data import folders
from earlybird.data.errors import InputError, write_error
from earlybird.data.profile import save_profile
from earlybird.data.tables import load_thune_table


def import_profiles(source: Path, output: Path) -> list[Path]:
    """Create the folder `output` with a profile for each CPU of the table, and return their paths; an import
    that fails or is interrupted leaves nothing."""
    profiles = load_thune_table(source)
    names = [re.sub(r"[^\w.,()@+:-]", "-", cpu) + ".json" for cpu in profiles]
    if len(set(names)) < len(names):
        raise InputError(
            f"{source} has CPUs whose names differ only in characters that no file name has; rename them"
        )
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with folders.create_whole(output) as folder:
            for name, profile in zip(names, profiles.values(), strict=True):
                save_profile(profile, folder / name)
    except FileExistsError as error:
        raise InputError(f"{output} exists already; choose another folder") from error
    except OSError as error:
        raise write_error(f"create the folder {output}", error) from error
    return [output / name for name in names]
