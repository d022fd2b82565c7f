"""The reason why no cluster can be created is reported with its remedy, for each cause."""

import pytest

from earlybird.machine.namespaces import Mode, Refusal, _explain, find_mode

TOLD = ["unshare failed: Operation not permitted", "write failed /proc/self/uid_map"]


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ],
)
def test_a_switch_that_denies_user_namespaces_is_named_to_ordinary_users(tmp_path, name, value, remedy):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(f"{value}\n")
    refusal = _explain(TOLD, tmp_path, user=1000)
    assert remedy in refusal.remedy
    assert "run as root" in refusal.remedy
    path.write_text("7\n")
    assert remedy not in _explain(TOLD, tmp_path, user=1000).remedy


def test_root_is_reported_capabilities_and_not_to_become_root(tmp_path):
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "max_user_namespaces").write_text("0\n")
    refusal = _explain(TOLD, tmp_path, user=0)
    assert TOLD[0] in refusal.cause
    assert "CAP_SYS_ADMIN" in refusal.cause
    assert "as root" not in refusal.remedy


def test_another_cause_is_reported_with_the_error_of_the_attempt(tmp_path):
    assert TOLD[1] in _explain(TOLD, tmp_path, user=1000).cause


def test_a_missing_tool_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "")
    find_mode.cache_clear()
    refusal = find_mode()
    find_mode.cache_clear()
    assert isinstance(refusal, Refusal)
    assert "nsenter" in refusal.cause
    assert "util-linux" in refusal.remedy


def test_a_user_namespace_is_made_once_and_entered_with_the_same_credentials():
    assert Mode(True).unshare("net")[:3] == ["unshare", "--user", "--map-root-user"]
    assert "--preserve-credentials" in Mode(True).enter(1, "net")
    assert "--user" not in Mode(False).enter(1, "net")
