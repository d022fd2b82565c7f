"""Module files, the Spack package, container recipes and ReFrame checks of contrib/ do what they say, as far
as that shows without the tools."""

import contextlib
import glob
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import types
from pathlib import Path

import pytest

from earlybird.machine.flavours import find_flavour

ROOT = Path(__file__).parents[2]
CONTAINER = ROOT / "contrib" / "container"
REFRAME = ROOT / "contrib" / "reframe" / "earlybird_checks.py"
MODULES = ROOT / "contrib" / "modulefiles"
PACKAGE = ROOT / "contrib" / "spack" / "packages" / "earlybird" / "package.py"
EXPECTED = [
    "setenv LIBEARLYBIRD /opt/earlybird/lib/libearlybird.so",
    "prepend-path PATH /opt/earlybird/bin",
    "prepend-path PKG_CONFIG_PATH /opt/earlybird/lib/pkgconfig",
    "prepend-path CMAKE_PREFIX_PATH /opt/earlybird",
]
TCL = """
foreach command {setenv prepend-path append-path module-whatis} {
    proc $command args "puts \\"$command \\$args\\""
}
source [lindex $argv 0]
ModulesHelp
"""
LUA = """
function pathJoin(...) return table.concat({...}, "/") end
function setenv(...) print("setenv", ...) end
function prepend_path(...) print("prepend-path", ...) end
function append_path(...) print("append-path", ...) end
function help(text) io.stderr:write(text) end
function whatis(text) end
dofile(arg[1])
"""


def loaded(interpreter: str, stand_in: str, module: str, tmp_path: Path) -> tuple[list[str], str]:
    """What loading a module sets, and its help."""
    if shutil.which(interpreter) is None:
        pytest.skip(f"no {interpreter} is on PATH")
    (tmp_path / "stand_in").write_text(stand_in)
    result = subprocess.run(
        [interpreter, tmp_path / "stand_in", MODULES / module], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    return [line for line in lines if not line.startswith("module-whatis")], result.stderr


@pytest.mark.parametrize(
    ("interpreter", "stand_in", "module"),
    [("tclsh", TCL, "earlybird.tcl"), ("lua", LUA, "earlybird.lua"), ("luajit", LUA, "earlybird.lua")],
)
def test_a_module_offers_the_command_and_names_the_library_and_preloads_it_nowhere(
    interpreter, stand_in, module, tmp_path
):
    said, help_text = loaded(interpreter, stand_in, module, tmp_path)
    assert said == EXPECTED
    assert "EARLYBIRD_OFF=1" in help_text


def test_both_modules_set_the_same_and_say_the_same():
    lua, tcl = ((MODULES / name).read_text() for name in ("earlybird.lua", "earlybird.tcl"))
    assert re.search(r"help\(\[\[\n(.*?)\n\]\]\)", lua, re.DOTALL)[1] in tcl
    for variable in re.findall(r'(?:setenv|prepend_path)\("(\w+)"', lua):
        assert re.search(rf"^(setenv|prepend-path) {variable} ", tcl, re.MULTILINE)
    assert lua.count("LD_PRELOAD=") == tcl.count("LD_PRELOAD=") == 2  # in the help alone


class FakeCMakePackage:
    """What the package uses of Spack's CMakePackage."""

    def define(self, name, value):
        return f"-D{name}={value}"


class FakePrefix(str):
    def __getattr__(self, name):
        return FakePrefix(f"{self}/{name}")


@contextlib.contextmanager
def working_dir(folder):
    with contextlib.chdir(folder):
        yield


def install(source, folder):
    found = glob.glob(source)
    assert found, f"{source} is not built"
    for path in found:
        shutil.copy2(path, folder, follow_symlinks=False)


@pytest.fixture
def package(monkeypatch):
    """The package, as if Spack had loaded it, and what it depends on."""
    needs = []
    spack = types.ModuleType("spack.package")
    spack.CMakePackage = FakeCMakePackage
    spack.license = spack.version = lambda *_, **__: None
    spack.depends_on = lambda name, **_: needs.append(name)
    spack.mkdirp = lambda folder: Path(folder).mkdir(parents=True, exist_ok=True)
    spack.working_dir, spack.install, spack.join_path = working_dir, install, lambda *parts: "/".join(parts)
    monkeypatch.setitem(sys.modules, "spack", types.ModuleType("spack"))
    monkeypatch.setitem(sys.modules, "spack.package", spack)
    return runpy.run_path(str(PACKAGE))["Earlybird"](), needs


SOON = ("-DCMAKE_BUILD_TYPE=Debug",)  # the compiler takes less than half the time


@pytest.mark.mpi
@pytest.mark.thorough
def test_the_spack_package_builds_the_library_alone(package, any_mpi, tmp_path):
    earlybird, needs = package
    assert {"c", "mpi@3.1:", "cmake@3.25:"} <= set(needs)
    assert Path(earlybird.git.removeprefix("file://")) == ROOT
    flavour = find_flavour(any_mpi)
    mpi = types.SimpleNamespace(mpicc=flavour.mpicc, name=flavour.family, version=flavour.version)

    class Spec(dict):
        version = "main"

    earlybird.spec, earlybird.build_directory = Spec(mpi=mpi), str(tmp_path / "build")
    earlybird.stage, earlybird.prefix = (
        types.SimpleNamespace(source_path=str(ROOT)),
        FakePrefix(tmp_path / "to"),
    )
    cmake = shutil.which("cmake", path=sysconfig.get_path("scripts")) or shutil.which("cmake")
    sources = ROOT / earlybird.root_cmakelists_dir
    for arguments in (
        [cmake, "-S", sources, "-B", tmp_path / "build", *earlybird.cmake_args(), *SOON],
        [cmake, "--build", tmp_path / "build", "--target", *earlybird.build_targets],
    ):
        result = subprocess.run(
            [str(word) for word in arguments],
            env=flavour.environment(),
            capture_output=True,
            text=True,
            timeout=280,
        )
        assert result.returncode == 0, result.stderr
        # CMake warns of a variable that nothing reads: one with a wrong name.
        assert "not used by the project" not in result.stderr
    earlybird.install(earlybird.spec, earlybird.prefix)
    found = {
        str(path.relative_to(tmp_path / "to")) for path in (tmp_path / "to").rglob("*") if path.is_file()
    }
    assert {"lib/libearlybird.so", "lib/pkgconfig/earlybird.pc", "include/earlybird.h"} <= found
    assert "lib/cmake/Earlybird/EarlybirdConfig.cmake" in found
    assert not (tmp_path / "to" / "bin").exists()

    set_by_it = {}
    earlybird.setup_run_environment(types.SimpleNamespace(set=set_by_it.__setitem__))
    assert set_by_it == {"LIBEARLYBIRD": f"{tmp_path / 'to'}/lib/libearlybird.so"}


def shell_syntax(script: str) -> None:
    checked = subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True, timeout=60)
    assert not checked.stderr, checked.stderr


def dockerfile() -> list[tuple[str, str]]:
    """(instruction, its arguments) of every line, continued lines joined."""
    text = (CONTAINER / "Dockerfile").read_text().replace("\\\n", "")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found = [re.fullmatch(r"(FROM|RUN|COPY|ENV|WORKDIR|ENTRYPOINT|CMD) (.+)", line) for line in lines]
    assert all(found), lines
    return [(one[1], one[2]) for one in found]


def definition() -> dict[str, str]:
    """Section -> its text; the header is the section ""."""
    text = re.sub(r"^#.*\n", "", (CONTAINER / "earlybird.def").read_text(), flags=re.MULTILINE)
    header, *sections = re.split(r"^%(\w+)\n", text, flags=re.MULTILINE)
    return {"": header} | dict(zip(sections[::2], sections[1::2], strict=True))


def copied() -> tuple[dict[str, str], dict[str, str]]:
    """File of the checkout -> path in the image, of both recipes."""
    of_docker = {}
    for instruction, arguments in dockerfile():
        if instruction == "COPY":
            *sources, target = arguments.split()
            of_docker |= {source: target + source if target.endswith("/") else target for source in sources}
    of_apptainer = dict(line.split() for line in definition()["files"].splitlines() if line.strip())
    return of_docker, of_apptainer


def test_images_have_every_file_that_pip_needs():
    of_docker, of_apptainer = copied()
    assert of_docker == of_apptainer
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    build = project["tool"]["hatch"]["build"]
    hooks = re.findall(r"custom\]\s*# (\S+)", (ROOT / "pyproject.toml").read_text())
    needed = {
        "pyproject.toml", project["project"]["readme"], *project["project"]["license-files"], *hooks,
        *(Path(package).parts[0] for package in build["targets"]["wheel"]["packages"]),
        *build["targets"]["wheel"]["force-include"],
    }  # fmt: skip
    assert set(of_docker) == needed and hooks
    assert all((ROOT / source).exists() for source in needed)
    let_through = re.findall(r"^!(.+)$", (CONTAINER / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    assert set(let_through) == needed


def test_both_images_are_made_alike_and_first_ask_about_the_machine():
    """Not `check`, which compares nodes with each other and refuses a single one."""
    instructions = dockerfile()
    assert dict(instructions)["ENTRYPOINT"] == '["earlybird"]'
    assert json.loads(dict(instructions)["CMD"]) == ["doctor"]
    sections = definition()
    header = dict(line.split(": ") for line in sections[""].splitlines() if line)
    assert header == {"Bootstrap": "docker", "From": dict(instructions)["FROM"]}
    runs = [arguments for instruction, arguments in instructions if instruction == "RUN"]
    for script in (*runs, sections["post"], sections["environment"], sections["runscript"]):
        shell_syntax(script)
    of_docker = {" ".join(one.split()) for run in runs for one in run.split("&&")}
    home = dict(instructions)["ENV"]
    of_apptainer = {
        line.strip().removeprefix(f"{home} ") for line in sections["post"].splitlines() if line.strip()
    }
    assert of_apptainer == of_docker | {"set -e"}
    assert f"export {home}" in sections["environment"]


@pytest.mark.parametrize(("given", "run"), [((), None), (("show", "a b"), ["show", "a b"])])
def test_the_runscript_passes_its_arguments_on(tmp_path, given, run):
    (tmp_path / "earlybird").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "earlybird").chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    script = definition()["runscript"]
    result = subprocess.run(
        ["sh", "-c", script, "runscript", *given], env=path, capture_output=True, text=True, timeout=60
    )
    assert result.stdout.splitlines() == (run or json.loads(dict(dockerfile())["CMD"]))


def reframe() -> str:
    found = shutil.which("reframe", path=sysconfig.get_path("scripts")) or shutil.which("reframe")
    if found is None:
        pytest.skip("ReFrame is not installed; pip install reframe-hpc")
    return found


def reframe_environment(folder: Path, first_on_path: Path | str) -> dict[str, str]:
    """ReFrame writes its log into the temporary folder, and keeps it when a check fails."""
    path = f"{first_on_path}:{os.environ['PATH']}"
    return os.environ | {"PATH": path, "HOME": str(folder), "TMPDIR": str(folder)}


@pytest.fixture
def run_reframe(tmp_path):
    """Runs the check of the ping-pong with one small size; returns the status, the output and the report."""

    def run(*options: str) -> tuple[int, str, dict]:
        scripts = sysconfig.get_path("scripts")
        report = tmp_path / "report.json"
        command = [
            reframe(), "--prefix", tmp_path / "reframe", "-c", REFRAME, "-n", "EarlybirdPingpong", "-r",
            "--report-file", report, "-S", "sizes=8", "-S", "options=--levels,intra_socket,--budget,2s",
            *options,
        ]  # fmt: skip
        env = reframe_environment(tmp_path, scripts)
        result = subprocess.run(
            list(map(str, command)), env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        return result.returncode, result.stdout + result.stderr, json.loads(report.read_text())

    return run


def test_each_point_has_a_name_of_its_own_and_baselines_are_in_the_folder_of_the_user(tmp_path):
    points = [
        {"operation": "bcast", "method": f"pipeline:{segment}", "ranks": 2, "size_bytes": 8, "time_s": 1e-6}
        for segment in (1024, 8192)
    ]
    points += [
        {"operation": "alltoallv", "method": "default", "ranks": 2, "skew": skew, "size_bytes": 8,
         "time_s": 1e-6}
        for skew in (1, 2)
    ]  # fmt: skip
    program = tmp_path / "earlybird"
    program.write_text(
        f"#!/bin/sh\n[ $1 = measure ] && echo '{json.dumps({'points': points})}' || echo \"$@\" >&2\n"
    )
    program.chmod(0o755)
    report = tmp_path / "report.json"
    env = reframe_environment(tmp_path, tmp_path)
    command = [
        reframe(), "--prefix", "reframe", "-c", REFRAME, "-n", "EarlybirdAllreduce", "-r", "--report-file",
        report, "-S", "baseline=old",
    ]  # fmt: skip
    subprocess.run(list(map(str, command)), env=env, cwd=tmp_path, capture_output=True, timeout=60)
    (case,) = json.loads(report.read_text())["runs"][0]["testcases"]
    assert {name.rpartition(":")[2] for name in case["perfvalues"]} == {
        "bcast_pipeline_1024_2_8", "bcast_pipeline_8192_2_8", "alltoallv_1_default_2_8",
        "alltoallv_2_default_2_8",
    }  # fmt: skip
    (errors,) = (tmp_path / "reframe" / "output").rglob("rfm_job.err")
    assert f"--folder {tmp_path / 'baselines'} run" in errors.read_text()


@pytest.mark.parametrize("status", [0, 1, 3])
def test_reframe_fails_if_nodes_are_to_be_left_out(tmp_path, status):
    program = tmp_path / "earlybird"
    program.write_text(f"#!/bin/sh\necho 'asked: '\"$@\"\nmkdir checked\nexit {status}\n")
    program.chmod(0o755)
    report = tmp_path / "report.json"
    command = [
        reframe(), "--prefix", "reframe", "-c", REFRAME, "-n", "EarlybirdCheck", "-r", "--report-file",
        report, "-S", "hosts=a,b,c",
    ]  # fmt: skip
    ran = subprocess.run(
        list(map(str, command)), env=reframe_environment(tmp_path, tmp_path), cwd=tmp_path, text=True,
        capture_output=True, timeout=60,
    )  # fmt: skip
    (case,) = json.loads(report.read_text())["runs"][0]["testcases"]
    assert case["result"] == ("pass" if status == 0 else "fail"), ran.stdout
    if status:
        assert f"earlybird check ended with status {status}" in ran.stdout
        assert "asked: check --hosts a,b,c --quiet -o checked" in ran.stdout


@pytest.mark.mpi
def test_reframe_reads_a_performance_variable_of_each_point(run_reframe, tmp_path, any_mpi):
    status, printed, report = run_reframe("-S", "launches=1", "-S", f"mpi={any_mpi}")
    assert status == 0, printed
    (case,) = report["runs"][0]["testcases"]
    assert case["result"] == "pass"
    (run,) = (tmp_path / "reframe" / "output").rglob("samples.ndjson")
    (sample,) = map(json.loads, run.read_text().splitlines())
    steady_us = sorted(1e6 * time_s for time_s in sample["times_s"][sample["warmup"] :])
    (value, *_, unit, _) = case["perfvalues"]["generic:default:intra_socket_8"]
    assert unit == "us" and steady_us[0] <= value <= steady_us[-1]


def test_a_point_slower_than_the_baseline_fails_the_check(run_reframe, tmp_path, in_process):
    """Both are drawn from profiles: the times of a machine could be reversed by what else it does."""

    def launcher(name: str, latency_s: float) -> str:
        level = {"protocols": [{"latency_s": latency_s, "bandwidth_bytes_per_s": {"1": 1e10}}]}
        profile = {"schema": "earlybird.profile/1", "levels": {"intra_socket": level}}
        (tmp_path / name).write_text(json.dumps(profile))
        return f"synthetic:{tmp_path / name}"

    few = ("--sizes", "8", "--launches", "5", "--quiet")
    in_process("measure", "pingpong", "--launcher", launcher("fast.json", 1e-6), *few, "-o", "run")
    in_process("baseline", "save", "old", "run", "--folder", tmp_path / "baselines")
    status, printed, report = run_reframe(
        "-S", "launches=5", "-S", f"rank_launcher={launcher('slow.json', 2e-6)}", "-S", "baseline=old", "-S",
        f"baselines={tmp_path / 'baselines'}",
    )  # fmt: skip
    (case,) = report["runs"][0]["testcases"]
    assert status != 0 and case["result"] == "fail"
    assert "earlybird compare ended with status 1" in printed and "slower" in printed
