"""Where `demo` runs its ranks: a core for each, a virtual cluster that ends again, or one rank per core."""

import pytest

from earlybird.cli.session import demo_place
from earlybird.data.errors import InputError, WorkError


@pytest.fixture
def machine(monkeypatch):
    """machine(cores, **faults) is a machine of one socket on which `up` or `launch` may raise an error; it
    returns the list of clusters that were started and ended."""

    def make(cores, up=None, launch=None):
        events = []

        def act(event, error):
            def call(name, *more):
                events.append((event, name))
                if error is not None:
                    raise error

            return call

        monkeypatch.setattr(demo_place.hardware, "cores_by_socket", lambda: [list(range(cores))])
        monkeypatch.setattr(demo_place.control, "up", act("up", up))
        monkeypatch.setattr(demo_place.control, "down", act("down", None))
        monkeypatch.setattr(demo_place, "_require_launch", act("launch", launch))
        return events

    return make


@pytest.mark.parametrize(("cores", "ranks"), [(4, 4), (7, 6), (16, 16)])
def test_enough_cores_get_a_rank_each(machine, capsys, cores, ranks):
    events = machine(cores)
    with demo_place.chosen_place("mpich") as place:
        assert place == ("local", ranks)
    assert events == []
    assert (
        f"{ranks} ranks, one per core: a socket of this machine has {cores} cores" in capsys.readouterr().err
    )


def test_few_cores_get_a_cluster_that_ends_with_the_demo(machine, capsys):
    events = machine(2)
    with pytest.raises(KeyboardInterrupt), demo_place.chosen_place("mpich") as (launcher, ranks):
        kind, _, name = launcher.partition(":")
        assert (kind, ranks) == ("cluster", demo_place.RANKS)
        assert events == [("up", name), ("launch", name)]
        raise KeyboardInterrupt
    assert events[-1] == ("down", name)
    err = capsys.readouterr().err
    assert "8 ranks on a virtual cluster of 4 nodes, links of 200 Mbit/s: this machine has 2 cores" in err


@pytest.mark.parametrize(
    ("cores", "faults", "ended"),
    [
        (2, {"up": InputError("user namespaces are denied")}, False),
        (1, {"launch": WorkError("user namespaces are denied")}, True),
    ],
)
def test_where_no_cluster_works_there_is_a_rank_per_core_and_the_cause(machine, capsys, cores, faults, ended):
    events = machine(cores, **faults)
    with demo_place.chosen_place("mpich") as place:
        assert place == ("local", 2)
        assert (events[-1][0] == "down") == ended
    assert "user namespaces are denied" in capsys.readouterr().err


def test_an_error_of_the_demo_itself_is_not_taken_for_one_of_the_cluster(machine):
    machine(2)
    with pytest.raises(WorkError, match="disk full"), demo_place.chosen_place(None):
        raise WorkError("disk full")
