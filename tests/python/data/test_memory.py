"""Available memory: what the machine has, within the limits of the process's cgroups."""

from earlybird.data import memory


def cgroup(folder, limit, used, statistics="", names=("memory.max", "memory.current")):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip((*names, "memory.stat"), (limit, used, statistics), strict=True):
        (folder / name).write_text(f"{text}\n")


def test_the_limit_of_every_cgroup_above_the_process_counts(tmp_path):
    cgroup(tmp_path / "job", "1000", "300", "anon 100\ninactive_file 200")
    cgroup(tmp_path / "job" / "step", "max", "50")
    cgroup(tmp_path / "other", "10", "0")
    assert list(memory._left_in_cgroups("0::/job/step\n", tmp_path)) == [900]


def test_cgroups_of_the_first_version_and_containers_count(tmp_path):
    first = ("memory.limit_in_bytes", "memory.usage_in_bytes")
    cgroup(tmp_path / "memory", "500", "600", names=first)
    text = "3:cpu:/x\n2:memory:/not/seen/here\n"
    assert list(memory._left_in_cgroups(text, tmp_path)) == [0]


def test_a_limit_below_what_the_machine_has_is_what_is_available(tmp_path, monkeypatch):
    whole = memory.available_memory_bytes()
    cgroup(tmp_path, "4096", "0")
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path)
    text = memory._text
    monkeypatch.setattr(memory, "_text", lambda path: "0::/\n" if path.name == "cgroup" else text(path))
    assert memory.available_memory_bytes() == 4096 < whole
