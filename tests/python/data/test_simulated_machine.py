"""A machine to simulate: what is taken where nothing is said, what a file changes, and what is refused."""

import json

import pytest

from earlybird.data.errors import InputError
from earlybird.data.levels import LEVELS
from earlybird.data.simulated_machine import SCHEMA, parse_simulated_machine

SHAPE = {"schema": SCHEMA, "nodes": 2, "sockets": 1, "cores": 4}


@pytest.fixture
def written(tmp_path):
    def write(**keys) -> str:
        path = tmp_path / "machine.json"
        path.write_text(json.dumps(SHAPE | keys))
        return str(path)

    return write


def test_a_shape_takes_costs_whose_sources_are_reported():
    machine = parse_simulated_machine("2x2x64")
    assert (machine.nodes, machine.sockets, machine.cores) == (2, 2, 64)
    latencies_s = [machine.levels[level].latency_s for level in LEVELS]
    assert latencies_s == sorted(latencies_s) and latencies_s[0] > machine.overheads_s
    assert all(any(level in source for source in machine.sources) for level in LEVELS)


def test_a_file_changes_its_values_and_its_sources(written):
    levels = {"inter_node": {"latency_s": 3e-6}}
    machine = parse_simulated_machine(written(levels=levels, eager_bytes=0, sources={"inter_node": "mine"}))
    plain = parse_simulated_machine("2x1x4")
    assert machine.levels["inter_node"].latency_s == 3e-6
    assert (
        machine.levels["inter_node"].bandwidth_bytes_per_s == plain.levels["inter_node"].bandwidth_bytes_per_s
    )
    assert machine.levels["intra_socket"] == plain.levels["intra_socket"]
    assert machine.eager_bytes == 0 and machine.sources == {"inter_node": "mine"}


def test_machines_are_described_alike_only_where_all_numbers_are_the_same(written):
    plain, same = parse_simulated_machine("2x1x4"), parse_simulated_machine(written())
    other = parse_simulated_machine(written(nic_bandwidth_bytes_per_s=1e9))
    assert plain.describe() == same.describe() != other.describe()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("2x64", "2x2x64"),
        ("0x1x1", "nodes is 0; give a whole number >= 1"),
        ("9999x9999x9999", "cores"),
        ("absent.json", "not exist"),
    ],
)
def test_what_is_no_machine_is_refused(text, word):
    with pytest.raises(InputError, match=word):
        parse_simulated_machine(text)


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"cores": 0}, "whole number"),
        ({"cores": True}, "whole number"),
        ({"speed": 1}, "'speed'"),
        ({"levels": {"rack": {"latency_s": 1e-5, "bandwidth_bytes_per_s": 1e9}}}, "give only intra_socket"),
        ({"levels": {"inter_node": {"rate": 1}}}, "'rate'"),
        ({"levels": []}, "a JSON object"),
        ({"levels": {"inter_node": {"latency_s": 1e-9}}}, "less than that of inter_socket"),
        ({"levels": {"intra_socket": {"latency_s": 1e-9}}}, "less than the two overheads"),
        ({"levels": {"inter_node": {"bandwidth_bytes_per_s": 1e12}}}, "inside a socket"),
        ({"nic_bandwidth_bytes_per_s": 0}, "a number >= 0.001"),
        ({"send_overhead_s": "slow"}, "send_overhead_s is 'slow'; give a number"),
        ({"schema": "other/1"}, "schema"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(written, keys, word):
    with pytest.raises(InputError, match=word):
        parse_simulated_machine(written(**keys))


def test_a_file_without_a_shape_is_refused(tmp_path):
    path = tmp_path / "machine.json"
    path.write_text(json.dumps({"schema": SCHEMA, "nodes": 2, "sockets": 2}))
    with pytest.raises(InputError, match="'cores'"):
        parse_simulated_machine(str(path))
