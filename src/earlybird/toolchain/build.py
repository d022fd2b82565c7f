"""Compile native/ for one MPI with CMake; results are cached under a key of everything they depend on.

Every `earlybird exec` imports this module, so imports that only a build needs are inside its functions.
"""

import contextlib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import earlybird
from earlybird.data.errors import InputError, WorkError
from earlybird.data.shell_commands import path_argument, quoted
from earlybird.machine.commands import path_folders
from earlybird.machine.flavours import Flavour, canonical_compiler, named_compilers
from earlybird.machine.home import BUILDS, KEYS, home, homes, in_homes

LIBRARY = "libearlybird.so"
# In the same folder, for programs of the MPI standard's own ABI, where the MPI has that as well.
ABI_LIBRARY = "libearlybird_abi.so"
# In the same folder: what `earlybird record` preloads, before libearlybird.
RECORDER, ABI_RECORDER = "libearlybird_recorder.so", "libearlybird_recorder_abi.so"

# The results of the feature probes, which a complete build has.
COMPLETE = "features.json"
# Next to it: what the build was compiled with.
COMPILED_WITH = "compiled_with.txt"
# What names the MPI of a build of libearlybird, in its description.
PKG_CONFIG = "lib/pkgconfig/earlybird.pc"
# The output of the last build that failed, next to the builds.
FAILED_BUILD = "failed-build.txt"
# The key, the architecture and the version, before what else a build depends on.
_KEY_FILE = re.compile(r"[0-9a-f]{12}\n\w+\n[0-9][\w.+-]*\n")


def native_sources() -> Path:
    """Return the folder of CMakeLists.txt: inside an installed package, or of the checkout this package is
    run from."""
    package = Path(earlybird.__file__).parent
    for folder in (package / "_native", package.parent.parent / "native"):
        if (folder / "CMakeLists.txt").exists():
            return folder
    raise WorkError(f"the native sources are missing from {package}; install earlybird again")


def native_prefix(flavour: Flavour) -> Path:
    """Return the folder in which the build of the present sources for `flavour` is, or would be."""
    return in_homes(_prefix_name(flavour), _is_complete)


def own_prefix(flavour: Flavour) -> Path:
    """Return the folder in which this user would build the present sources for `flavour`."""
    return home() / _prefix_name(flavour)


def _prefix_name(flavour: Flavour) -> str:
    return f"{BUILDS}/{label_of_build(flavour.name, flavour.mpicc)}-{_cache_key(flavour)}"


def built_by(name: str, mpicc: Path) -> tuple[str, Path]:
    """Return the name and the compiler by which the MPI `name` is built, independent of how it is given: as
    `system`, or by any path of its `mpicc`."""
    real = os.path.realpath(mpicc)
    for own, compiler in named_compilers():
        if name == own or os.path.realpath(compiler) == real:
            return own, mpicc if name == own else compiler
    return str(canonical_compiler(mpicc)), Path(real)


def label_of_build(name: str, mpicc: Path) -> str:
    """Return the prefix of the names of the folders of builds for an MPI: its name, or its folder."""
    stated, compiler = built_by(name, mpicc)
    return label(str(compiler.parent) if os.sep in stated else stated)


def _is_complete(prefix: Path) -> bool:
    return os.path.exists(prefix / COMPLETE)  # False also where this user may not look


def is_built(flavour: Flavour) -> bool:
    return _is_complete(native_prefix(flavour))


def features(flavour: Flavour) -> dict[str, bool]:
    """Return the results of the feature probes; empty if nothing is built."""
    import json

    path = native_prefix(flavour) / COMPLETE
    return json.loads(path.read_text()) if path.exists() else {}


def require_built(flavour: Flavour) -> None:
    """Raise InputError naming the command that builds the native code if it is not built."""
    if not is_built(flavour):
        from earlybird.toolchain.install import inside_job

        where = " on the login node" if inside_job() else ""
        raise InputError(
            f"the native code is not built for {flavour.name}; run `earlybird build --mpi "
            f"{quoted(flavour.name)}`{where}"
        )


def kernel_path(flavour: Flavour, kernel: str) -> Path:
    """Return the program `kernel` built for `flavour`; raise InputError if it is not built."""
    require_built(flavour)
    return native_prefix(flavour) / "bin" / kernel


def library_path(flavour: Flavour) -> Path:
    """Return the path at which libearlybird for `flavour` is, or would be."""
    return native_prefix(flavour) / "lib" / LIBRARY


def has_library(flavour: Flavour) -> bool:
    return is_built(flavour) and library_path(flavour).exists()


def require_library(flavour: Flavour) -> None:
    """Raise InputError naming the command that builds libearlybird if it is not built."""
    require_built(flavour)
    if not has_library(flavour):
        raise InputError(
            f"libearlybird is not built for {flavour.name}; run `earlybird build --mpi "
            f"{quoted(flavour.name)}`"
        )


def build_native(flavour: Flavour, say: Callable[[str], None]) -> Path:
    """Compile for `flavour` unless that is done already; return the install prefix.

    The prefix appears by renaming a finished build, so an interrupted build is never taken for a complete
    one. Raises WorkError with the compiler's message when compiling fails.
    """
    import shutil
    import tempfile

    from earlybird.toolchain.install import inside_job, locked, refuse_inside_job

    prefix = native_prefix(flavour)
    # An administrator's build is taken as it is, whatever compilers this user has.
    if _is_complete(prefix) and (inside_job() or prefix.parent.parent != home()):
        return prefix
    refuse_inside_job(flavour.name)
    compiled_with = _compiled_with(flavour)
    with locked(f"build-{prefix.name}"):
        note = prefix / COMPILED_WITH
        if _is_complete(prefix) and note.exists() and note.read_text() == compiled_with:
            return prefix
        say(f"building the native code for {flavour.name} {flavour.version}")
        prefix.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".build-", dir=prefix.parent) as folder:
            _compile(flavour, Path(folder))
            (Path(folder) / "install" / note.name).write_text(compiled_with)
            shutil.rmtree(prefix, ignore_errors=True)
            os.replace(Path(folder) / "install", prefix)
    return prefix


def _compile(flavour: Flavour, folder: Path) -> None:
    import shutil
    import sysconfig

    environment = flavour.environment()
    # Flags that a user set for other builds must not change what is measured.
    for name in ("CFLAGS", "CXXFLAGS", "LDFLAGS"):
        environment.pop(name, None)
    environment["PATH"] = f"{sysconfig.get_path('scripts')}{os.pathsep}{environment['PATH']}"
    cmake = shutil.which("cmake", path=environment["PATH"])
    if cmake is None:
        raise WorkError(f"cmake is missing; run `{path_argument(sys.executable)} -m pip install cmake ninja`")
    generator = ["-G", "Ninja"] if shutil.which("ninja", path=environment["PATH"]) else []
    build, temporary = folder / "build", folder / "tmp"
    # What a compiler that is killed leaves ends with the build's folder.
    temporary.mkdir()
    environment["TMPDIR"] = str(temporary)
    _run(
        [cmake, "-S", native_sources(), "-B", build, *generator, f"-DMPI_C_COMPILER={flavour.mpicc}",
         f"-DCMAKE_INSTALL_PREFIX={folder / 'install'}", "-DCMAKE_BUILD_TYPE=Release",
         f"-DEARLYBIRD_VERSION={earlybird.__version__}",
         f"-DEARLYBIRD_MPI={built_by(flavour.name, flavour.mpicc)[0]} {flavour.version}",
         *json_header()],
        environment, folder / "log.txt", flavour,
    )  # fmt: skip
    _run(
        [cmake, "--build", build, "--parallel", "--target", "install"],
        environment,
        folder / "log.txt",
        flavour,
    )


def json_header() -> list[str]:
    """Return the option of CMake for nlohmann/json.hpp; without the Python package CMake looks for a
    system's."""
    from importlib.util import find_spec

    package = find_spec("nlohmann_json")
    if package is None or package.origin is None:
        return []
    return [f"-DNLOHMANN_JSON_INCLUDE={Path(package.origin).parent / 'include'}"]


def _run(command: list, environment: dict[str, str], log: Path, flavour: Flavour) -> None:
    import shutil
    import subprocess

    with open(log, "a") as stream:
        result = subprocess.run(
            [str(word) for word in command],
            env=environment, stdout=stream, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    if result.returncode == 0:
        return
    kept = home() / BUILDS / FAILED_BUILD
    shutil.copyfile(log, kept)
    # CMake's messages on a probe ("-- ... not found") and on where it stopped precede the error.
    lines = [
        line.strip()
        for line in log.read_text(errors="replace").splitlines()
        if line.strip() and not line.startswith(("--", "CMake Error at"))
    ]
    errors = [line for line in lines if re.search(r"\berror\b|not found|could not", line, re.IGNORECASE)]
    reason = (errors or lines or ["no output"])[0]
    raise WorkError(f"the native code does not build with {flavour.mpicc}: {reason} (all of it: {kept})")


def label(name: str) -> str:
    """Return the name of an MPI for use in a file name."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")[-200:]


def name_of_build(build: Path) -> str | None:
    """Return the name of the MPI that libearlybird in `build` is for; None if it has no libearlybird."""
    try:
        text = (build / PKG_CONFIG).read_text()
    except (OSError, UnicodeDecodeError):
        return None
    stated = re.search(r"^Description: .* on top of (.+) \S+$", text, re.MULTILINE)
    return stated[1] if stated else None


def names_of_builds() -> list[str]:
    """Return the name of every MPI for which there is a build: those on PATH first, in its order."""
    builds = (build for folder in homes() for build in sorted((folder / BUILDS).glob("*")))
    names = dict.fromkeys(filter(None, map(name_of_build, builds)))
    folders = [os.path.realpath(folder) for folder in path_folders()]
    order = {folder: place for place, folder in reversed(list(enumerate(folders)))}
    return sorted(names, key=lambda name: order.get(os.path.realpath(os.path.dirname(name)), len(order)))


def is_key_file(path: Path) -> bool:
    """Return whether `path` is a file of KEYS."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return _KEY_FILE.match(path.read_text()) is not None
    return False


def _cache_key(flavour: Flavour) -> str:
    """Return a digest of the inputs of a build, computed again only if a file has another size or time than
    before, because reading all of them takes as long as a third of the start of `earlybird exec`."""
    sources = _files(str(native_sources()))
    _, mpicc = built_by(flavour.name, flavour.mpicc)
    around = [
        os.uname().machine,
        earlybird.__version__,
        _identity(mpicc),
        _identity(_resolved_library(mpicc)),
    ]
    seen = "\n".join([*around, *map(_identity_of_source, sources)])
    for folder in homes():
        with contextlib.suppress(OSError, ValueError):
            key, known = (folder / KEYS / label(flavour.name)).read_text().split("\n", 1)
            if known == seen:
                return key
    key = _digest(around, sources)
    remembered = home() / KEYS / label(flavour.name)
    with contextlib.suppress(OSError):  # the user may have no home folder
        remembered.parent.mkdir(parents=True, exist_ok=True)
        new = remembered.with_name(f".{os.getpid()}")
        new.write_text(f"{key}\n{seen}")
        os.replace(new, remembered)
    return key


def _files(folder: str) -> list[str]:
    """Return the path of every file below `folder`, folder by folder; no build needs the fuzz targets."""
    found = []
    for above, folders, names in os.walk(folder):
        if above == folder and "fuzz" in folders:
            folders.remove("fuzz")
        found += [os.path.join(above, name) for name in names]
    return sorted(found, key=lambda path: path.split(os.sep))


def _identity_of_source(path: str) -> str:
    status = os.stat(path)
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def _digest(around: list[str], sources: list[str]) -> str:
    import hashlib

    digest = hashlib.sha256()
    for item in around:
        digest.update(item.encode() + b"\0")
    for path in sources:
        content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        digest.update(f"{os.path.relpath(path, native_sources())} {content}\0".encode())
    return digest.hexdigest()[:12]


def _compiled_with(flavour: Flavour) -> str:
    """Return the compilers and the wrapper's flags, stored with a build; a change requires a new build.

    Not part of the key, because a compute node without these compilers must find the build.
    """
    import shlex
    import shutil
    import subprocess

    compilers = [os.environ.get("CC", "cc"), os.environ.get("CXX", "c++")]
    found = [_identity(shutil.which(shlex.split(compiler)[0])) for compiler in compilers]
    shown = subprocess.run(
        [flavour.mpicc, "-show"], capture_output=True, text=True, env=flavour.environment(), timeout=60
    )
    return "\n".join([*found, shown.stdout])


def _resolved_library(mpicc: Path) -> Path | None:
    """Return the libmpi that the wrapper's folder links to: a wrapper may be unchanged although the library
    changes."""
    for folder in ("lib", "lib64", "lib/release"):
        library = mpicc.parent.parent / folder / "libmpi.so"
        if library.exists():
            return library.resolve()
    return None


def _identity(path: str | Path | None) -> str:
    """Return path, size and time of a file, which identify its version without running it."""
    if path is None:
        return "absent"
    real = Path(path).resolve()
    status = real.stat()
    return f"{path} {real} {status.st_size} {status.st_mtime_ns}"
