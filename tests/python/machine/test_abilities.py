"""What can be measured here, and `earlybird doctor`, which tells it."""

import json

import pytest

from earlybird.cli import main
from earlybird.cli.commands import doctor
from earlybird.machine import abilities, hardware


@pytest.mark.parametrize("cores", [[[0]], [[0, 1]], [[0, 1, 2, 3]], [[0, 1], [2, 3]]])
def test_every_no_has_a_cause_and_a_remedy(monkeypatch, cores):
    monkeypatch.setattr(hardware, "cores_by_socket", lambda: cores)
    monkeypatch.setattr(abilities.shutil, "which", lambda name: None)
    output = abilities.abilities()
    assert output["intra_socket"].can == (max(map(len, cores)) >= 2)
    assert output["inter_socket"].can == (len(cores) > 1)
    assert not output["inter_node"].can
    assert all(ability.cause and ability.remedy for ability in output.values() if not ability.can)


@pytest.mark.parametrize(("scope", "can"), [("0\n", True), ("1\n", False), ("", True), (None, True)])
def test_a_kernel_that_forbids_reading_another_process_is_named(monkeypatch, tmp_path, scope, can):
    path = tmp_path / "ptrace_scope"
    if scope is not None:
        path.write_text(scope)
    monkeypatch.setattr(abilities, "_PTRACE_SCOPE", path)
    output = abilities.abilities()["single_copy"]
    assert output.can == can
    assert can or "ptrace_scope=0" in output.remedy


def test_a_container_that_forbids_reading_another_process_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(abilities, "_PTRACE_SCOPE", tmp_path / "none")
    monkeypatch.setattr(abilities, "_error_of_single_copy", lambda: "Operation not permitted")
    output = abilities.abilities()["single_copy"]
    assert not output.can and "Operation not permitted" in output.cause and "SYS_PTRACE" in output.remedy


def test_memory_that_ranks_cannot_share_or_that_is_small_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(abilities, "_OVERCOMMIT", tmp_path / "overcommit")
    for mode, folder, can, cause in (
        ("0", "/dev/shm", True, ""),
        ("2", "/dev/shm", False, "vm.overcommit_memory is 2"),
        ("0", "/proc", True, "/dev/shm has 0 MiB"),
        ("0", str(tmp_path / "none"), False, "No such file"),
    ):
        (tmp_path / "overcommit").write_text(f"{mode}\n")
        monkeypatch.setattr(abilities, "_SHARED_MEMORY", folder)
        output = abilities.abilities()["shared_memory"]
        assert output.can == can and cause in output.cause and bool(output.remedy) == bool(cause)


def _doctor(monkeypatch, capsys, *arguments) -> str:
    monkeypatch.setattr("sys.argv", ["earlybird", "doctor", *arguments])
    with pytest.raises(SystemExit) as end:
        main.run()
    assert end.value.code == 0
    return capsys.readouterr().out


def test_doctor_json_has_the_promised_keys(monkeypatch, capsys):
    output = json.loads(_doctor(monkeypatch, capsys, "--json"))
    assert {"flavours", "cores", "sockets", "can"} <= output.keys()
    for flavour in output["flavours"]:
        assert {"name", "version", "mpicc", "mpiexec", "env", "built"} <= flavour.keys()
    assert all(set(ability) == {"can", "cause", "remedy"} for ability in output["can"].values())


def test_doctor_counts_in_words_aligns_paths_and_leaves_no_yes_bare(monkeypatch, capsys):
    can = {name: abilities.Ability(True) for name in abilities.abilities()}
    can["inter_node"] = abilities.Ability(True, "", "ask srun")
    monkeypatch.setattr(doctor, "abilities", lambda: can)
    rows = [["mpich", "MPICH", "5", "mpiexec", "built", "yes", "/a"]]
    rows += [["intel", "Intel MPI", "2", "mpiexec", "built", "no", "/a/longer/path"]]
    monkeypatch.setattr(doctor, "_row", lambda flavour: rows[flavour.name != "mpich"])
    monkeypatch.setattr(doctor, "_absent_row", lambda name, cause: rows[name != "mpich"])
    machine = hardware.describe() | {"cores": 1, "sockets": 1}
    monkeypatch.setattr(hardware, "describe", lambda: machine)
    output = _doctor(monkeypatch, capsys).splitlines()
    assert "1 core on 1 socket, " in output[0]
    assert len({line.index("/a") for line in output if "/a" in line}) == 1
    yes = [line for line in output if line.startswith("yes ")]
    assert len(yes) == len(can) and all(len(line.split()) > 2 for line in yes)


def test_doctor_says_what_to_do_about_an_absent_flavour(monkeypatch, capsys, tmp_path, nothing_installed):
    monkeypatch.setenv("EARLYBIRD_HOME", str(tmp_path))
    output = _doctor(monkeypatch, capsys)
    assert "earlybird build --mpi openmpi" in output
    assert json.loads(_doctor(monkeypatch, capsys, "--json"))["can"]
