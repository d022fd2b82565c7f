"""--agent: a command that reaches the nodes of --hosts as ssh does."""

import json

import pytest

pytestmark = pytest.mark.mpi


@pytest.fixture
def earlybird(in_process):
    return in_process


# Drops options and the host, and runs the rest here: the two names are one machine.
AGENT = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
echo "$1" >> "$(dirname "$0")/reached"
shift
exec sh -c "$*"
"""


def test_hosts_are_reached_by_the_agent(mpi, earlybird, refused, tmp_path):
    agent = tmp_path / "agent"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    (tmp_path / "p.csv").write_text("src,dst,bytes\n0,1,8\n")
    arguments = (
        "replay",
        "p.csv",
        "--layout",
        "2x1x1",
        "--hosts",
        "me@first.invalid,second.invalid",
        "--mpi",
        mpi,
    )
    result = earlybird(*arguments, "--agent", agent, "-o", "run", check=False)
    # Ranks started and reported that they share a host.
    refused(result, "rank 1 is not where", status=1)
    reached = (tmp_path / "reached").read_text().split()
    assert {"me@first.invalid", "second.invalid"} == set(reached)
    settings = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert settings["agent"] == str(agent)


@pytest.mark.parametrize("agent", ["nosuch-agent", "sh -c", ""])
def test_an_agent_that_is_no_program_is_refused_before_anything_starts(
    any_mpi, earlybird, refused, tmp_path, agent
):
    arguments = ("measure", "pingpong", "--hosts", "first.invalid", "--mpi", any_mpi, "-o", "run")
    refused(
        earlybird(*arguments, "--agent", agent, check=False), f"--agent is {agent!r}", "not a program on PATH"
    )
    assert not (tmp_path / "run").exists()


def test_an_agent_without_hosts_is_refused(any_mpi, earlybird, refused):
    refused(
        earlybird("measure", "pingpong", "--agent", "rsh", "--mpi", any_mpi, check=False), "--agent", "hosts"
    )
