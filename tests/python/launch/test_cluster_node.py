"""The settings of a virtual node."""

import pytest

from earlybird.launch.cluster import node


def test_a_kernel_without_a_setting_of_tcp_is_reported(monkeypatch, tmp_path):
    monkeypatch.setattr(node, "_TCP", tmp_path / "missing")
    with pytest.raises(
        SystemExit, match=r"tcp_congestion_control cannot be set to reno: No such file .*4\.15"
    ):
        node._set_tcp()
