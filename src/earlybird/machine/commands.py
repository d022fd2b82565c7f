"""Where on PATH a command is: shutil.which for POSIX, without what else shutil brings along."""

import os


def find_command(name: str, path: str | None = None) -> str | None:
    """The path of the command `name` as a shell would find it on `path` (default: $PATH), or None."""
    if os.sep in name:
        return name if is_executable(name) else None
    candidates = (os.path.join(folder, name) for folder in path_folders(path))
    return next(filter(is_executable, candidates), None) if name else None


def path_folders(path: str | None = None) -> list[str]:
    """The folders of `path` (default: $PATH)."""
    folders = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    return [folder or os.curdir for folder in folders]


def is_executable(path: str) -> bool:
    """Whether `path` is a file that this user may start."""
    return os.access(path, os.X_OK) and os.path.isfile(path)
