"""What the files of agents say while these write, stop writing and leave, on files that are written here."""

import pytest

from earlybird.data import node_pages
from earlybird.data.node_pages import load_node_serial
from earlybird.data.rank_states import ENDED, RUNS
from earlybird.launch import other_nodes
from earlybird.launch.other_nodes import LookGivenUp, OtherNodes
from tests.stuck_job import Agents, pages_of_a_job


class Clock:
    """Time that passes where the look waits; `then` is called at each of these waits."""

    def __init__(self, monkeypatch):
        self.now_s, self.then = 0.0, []
        monkeypatch.setattr(other_nodes.time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(other_nodes.time, "sleep", self._sleep)

    def _sleep(self, seconds):
        self.now_s += seconds
        if self.then:
            self.then.pop(0)()


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.fixture
def agents(tmp_path):
    """Those of two nodes of two ranks each."""
    made = Agents(tmp_path, list(pages_of_a_job(4, {})), 2)
    made.write()
    return made


def every_page(name, page):
    return True


def write_field(path, name, value):
    """Change a field of the head of an agent's file."""
    data = bytearray(path.read_bytes())
    kind, at = node_pages._HEAD.fields[name]
    data[at : at + kind.itemsize] = value.to_bytes(kind.itemsize, "little")
    path.write_bytes(data)


def test_a_second_copy_is_begun_after_the_first_was_seen(tmp_path, clock, agents):
    nodes = OtherNodes(tmp_path, every_page)
    # The next writing may have begun before: only the one after it counts.
    clock.then = [agents.write, agents.write]
    pages = nodes.again(is_over=False)
    assert sorted(pages) == [f"rank-{rank}.open" for rank in range(4)]
    assert all(page.is_reached for page in pages.values())
    assert not clock.then and clock.now_s == pytest.approx(0.2)


def test_an_agent_that_stops_writing_is_not_reached(tmp_path, clock, agents):
    nodes = OtherNodes(tmp_path, every_page)
    stopped = (tmp_path / "rank-2.pages").read_bytes()

    def write():
        agents.write()
        (tmp_path / "rank-2.pages").write_bytes(stopped)

    clock.then = [write, write]
    pages = nodes.again(is_over=False)
    assert {name: page.is_reached for name, page in pages.items()} == {
        "rank-0.open": True, "rank-1.open": True, "rank-2.open": False, "rank-3.open": False,
    }  # fmt: skip
    assert clock.now_s == pytest.approx(3.6, abs=0.15)  # two and a half of its periods, and a second


def test_an_agent_that_writes_a_last_time_is_reached(tmp_path, clock, agents):
    nodes = OtherNodes(tmp_path, every_page)

    def end():
        for path in tmp_path.glob("*.pages"):
            write_field(path, "is_final", 1)

    clock.then = [end]
    assert all(page.is_reached for page in nodes.again(is_over=True).values())
    assert clock.now_s == pytest.approx(0.1)


def test_the_end_of_a_job_waits_a_while_for_its_agents(tmp_path, clock, agents):
    nodes = OtherNodes(tmp_path, every_page)
    clock.then = [agents.write] * 5  # they go on, and do not say that it was the last time
    pages = nodes.again(is_over=True)
    assert len(pages) == 4 and not any(page.is_reached for page in pages.values())
    assert clock.now_s == pytest.approx(other_nodes._END_S, abs=0.15)


@pytest.mark.parametrize("content", [None, b"", b"\0" * 64])
def test_pages_of_a_node_that_has_left_are_none(tmp_path, clock, agents, content):
    """Its ranks have left MPI_Finalize; or what is there is no file of an agent."""
    nodes = OtherNodes(tmp_path, every_page)

    def leave():
        agents.write()
        agents.write()
        path = tmp_path / "rank-2.pages"
        path.unlink()
        if content is not None:
            path.write_bytes(content)

    clock.then = [leave]
    assert sorted(nodes.again(is_over=False)) == ["rank-0.open", "rank-1.open"]
    assert load_node_serial(tmp_path / "rank-2.pages") is None


def test_a_file_that_cannot_be_read_to_its_end_is_left_out(tmp_path, clock, agents):
    nodes = OtherNodes(tmp_path, every_page)

    def cut():
        agents.write()
        agents.write()
        path = tmp_path / "rank-2.pages"
        path.write_bytes(path.read_bytes()[:-1])

    clock.then = [cut]
    assert sorted(nodes.again(is_over=False)) == ["rank-0.open", "rank-1.open"]
    assert load_node_serial(tmp_path / "rank-2.pages").serial == 3


def test_something_urgent_ends_the_wait_for_a_second_copy(tmp_path, clock, agents):
    nodes = OtherNodes(tmp_path, every_page)
    with pytest.raises(LookGivenUp):
        nodes.again(is_over=False, is_urgent=lambda: clock.now_s > 0.25)


def test_only_pages_that_are_wanted_are_waited_for(tmp_path, clock, agents):
    nodes = OtherNodes(tmp_path, lambda name, page: name == "rank-1.open" and page.state == RUNS)
    (tmp_path / "rank-2.pages").unlink()  # of no use, so nobody looks whether it is there
    clock.then = [agents.write, agents.write]
    assert sorted(nodes.again(is_over=False)) == ["rank-1.open"]
    assert OtherNodes(tmp_path, lambda name, page: False).again(is_over=False) == {}


def test_of_two_nodes_with_a_page_of_one_name_the_ended_one_is_of_an_earlier_job(tmp_path, clock, agents):
    first, second = tmp_path / "rank-0.pages", tmp_path / "rank-2.pages"
    data = bytearray(first.read_bytes())
    state_at = node_pages._HEAD.itemsize + node_pages._PAGE.fields["state"][1]
    data[state_at] = node_pages._STATES.index(ENDED)
    second.write_bytes(data)
    nodes = OtherNodes(tmp_path, every_page)
    for path in (first, second):
        write_field(path, "is_final", 1)
    assert nodes.again(is_over=False)["rank-0.open"].second.state == RUNS


def test_a_file_of_an_agent_that_is_absent_or_none_has_no_serial_number(tmp_path):
    assert load_node_serial(tmp_path / "absent") is None
    assert load_node_serial(tmp_path) is None
    (tmp_path / "short").write_bytes(b"\0" * 63)
    assert load_node_serial(tmp_path / "short") is None
