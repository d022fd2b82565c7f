"""Commands that are printed can be pasted, whatever the names of files are."""

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from earlybird.data.collective_configuration import Region, configuration
from earlybird.data.plain_text import plain_line
from earlybird.data.shell_commands import quoted
from earlybird.interop.settings_file import write_settings
from earlybird.launch import batch_script

ROOT = Path(__file__).parents[3]
MPICH = ROOT / "tests" / "recorded" / "epyc-two-cores" / "mpich"
FOLDER = 'it\'s $(touch pasted) `touch pasted` && \x1b[31m\u202e "q" \\ a  b'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / FOLDER).mkdir()
    return Path(FOLDER)


def pasted(text, introduction):
    """The arguments of the command that follows the introduction in a line of the text."""
    (line,) = [line for line in text.splitlines() if introduction in line]
    assert plain_line(line) == line
    command = line.partition(introduction)[2]
    output = subprocess.run(
        ["bash", "-c", "printf '%s\\0' " + command], stdout=subprocess.PIPE, check=True
    ).stdout
    return [os.fsdecode(part) for part in output.split(b"\0")[:-1]]


def test_after_a_fit(in_process, folder):
    fitted = in_process("fit", MPICH / "run", "-o", folder / "profile.json")
    assert pasted(fitted.stderr, "next: ")[:5] == [
        "earlybird", "predict", "PATTERN", "--profile", str(folder / "profile.json")
    ]  # fmt: skip


def test_a_name_with_a_dash_first_is_no_option(in_process, tmp_path):
    (tmp_path / "pattern.csv").write_text("src,dst,bytes\n0,1,8\n")
    in_process("export", "pattern.csv", "--to", "goal", "-o", "-x.goal")
    (tmp_path / "layout.csv").write_text("rank,node,socket\n0,0,0\n1,1,0\n")
    used = in_process("export", "layout.csv", "--to", "mpich", "--hosts", "a,b", "-o", "-hosts")
    assert pasted(used.stderr, "use it with: ") == ["mpiexec", "-n", "2", "-f", "./-hosts", "PROGRAM"]


@pytest.mark.parametrize("target", ["mpich", "openmpi", "intel", "slurm"])
def test_a_placement(in_process, folder, tmp_path, target):
    (tmp_path / "layout.csv").write_text("rank,node,socket\n0,0,0\n1,1,0\n")
    path = folder / "hosts"
    used = in_process("export", "layout.csv", "--to", target, "--hosts", "a,b", "-o", path)
    text = used.stderr.replace("SLURM_HOSTFILE=", "SLURM_HOSTFILE ")
    assert any(argument.endswith(str(path)) for argument in pasted(text, "use it with: "))


def test_settings_of_algorithms(in_process, folder, tmp_path):
    profile = ROOT / "examples" / "collectives" / "profile.json"
    path = folder / "settings"
    advised = in_process(
        "advise", "collective", "--op", "bcast", "--ranks", 4, "--profile", profile, "--config", path
    )
    whole = str((tmp_path / path).resolve())
    assert any(argument.endswith(whole) for argument in pasted(advised.stderr, "use it with: "))


def test_settings_that_name_a_file_next_to_them(folder, tmp_path):
    path = tmp_path / folder / "settings.sh"
    settings = configuration("mpich", [Region("bcast", "linear", 8)])
    remarks = write_settings(replace(settings, text='export SELECTION="FILE.json"\n'), path)
    command = " ".join(map(quoted, pasted("\n".join(map(plain_line, remarks)), "use it with: ")))
    set_to = subprocess.run(
        ["bash", "-c", f'{command}; printf "%s" "$SELECTION"'],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        check=True,
    )
    assert set_to.stdout.decode() == f"{path}.json"


def test_a_batch_script(in_process, folder, tmp_path, any_mpi, monkeypatch):
    own = tmp_path / "earlybird"
    own.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\" >> called\n")
    own.chmod(0o755)
    monkeypatch.setattr(batch_script, "_own_command", lambda: [str(own)])
    script = in_process(
        "measure",
        "pingpong",
        "--mpi",
        any_mpi,
        "--print-script",
        "slurm",
        "--sizes",
        "8",
        "-o",
        folder / "run",
    ).stdout
    subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True)
    assert str(folder / "run") in (tmp_path / "called").read_text()


def test_the_terminal_report(in_process, folder, tmp_path):
    in_process("fit", MPICH / "run", "-o", folder / "profile.json")
    text = in_process("report", MPICH / "run", folder / "profile.json", "--terminal").stdout
    joined = re.sub(r" \\\n\s*", " ", text)
    quoted = re.findall(r"--profile (\$'(?:\\.|[^'])*')", joined)
    assert quoted
    for argument in quoted:
        assert pasted(f"> {argument}", "> ") == [str(folder / "profile.json")]
    assert not (tmp_path / "pasted").exists()
