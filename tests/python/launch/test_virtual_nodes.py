"""The network of virtual nodes, without starting them."""

from types import SimpleNamespace

import pytest

from earlybird.data.layout import parse_layout
from earlybird.launch import mpiexec
from earlybird.launch.cluster import node
from earlybird.launch.cluster.launcher import ClusterLauncher
from earlybird.launch.cluster.state import LINKS, Cluster, Process


def test_a_kernel_without_a_setting_of_tcp_is_reported(monkeypatch, tmp_path):
    monkeypatch.setattr(node, "_TCP", tmp_path / "missing")
    message = r"tcp_congestion_control cannot be set to reno: No such file .*Linux 4\.15"
    with pytest.raises(SystemExit, match=message):
        node._set_tcp(node._TCP_SETTINGS)


def test_runs_with_the_machines_settings_of_tcp_are_of_another_network():
    earlier = "virtual links of 200 Mbit/s each way"
    links = Cluster("c", 25e6, 4 << 20, Process(1, 1), False, ()).describe()
    assert links != earlier
    assert [LINKS.fullmatch(one)[1] for one in (links, earlier)] == ["200", "200"]


def test_nothing_learned_on_virtual_links_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(mpiexec, "invocation", lambda *given, **more: mpiexec.Invocation((), {}))
    node0 = SimpleNamespace(name="node0")
    cluster = SimpleNamespace(
        nodes=[node0], agent="agent", user_namespace=False, head_arguments=lambda: ("enter",)
    )
    launcher = ClusterLauncher(SimpleNamespace(family="mpich"), cluster)
    assert launcher.invocation(parse_layout("1x1x1"), tmp_path).preferred == {"EARLYBIRD_CACHE": "off"}
