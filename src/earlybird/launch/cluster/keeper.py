"""The one process that holds a cluster: it makes the network and the nodes, and all of it ends when it ends.

Nothing of a cluster has a name outside its processes' namespaces, so after `kill -9` of the keeper, too, the
kernel takes everything back: the first process of every node is killed with it, and so is all of the node.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

from earlybird.launch.cluster import network, node, state
from earlybird.launch.cluster.state import NODE_NAMESPACES, Cluster, Node, Process
from earlybird.machine.namespaces import Mode

_ENDING = {signal.SIGTERM, signal.SIGINT}
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def main(
    name: str, num_nodes: int, rate_bytes_per_s: float, send_buffer_bytes: int, user_namespace: bool
) -> None:
    """Build the cluster, print `ready` on stdout, keep it until SIGTERM; the caller has claimed the name."""
    # Blocked, so that none is lost before it is waited for.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    with state.opened(name) as folder:
        hosts = folder.path / "hosts"
        folder.write_text(hosts.name, _hosts(num_nodes), mode=0o644)
    starters = [_start_node(k, hosts, send_buffer_bytes) for k in range(num_nodes)]
    from earlybird.launch.cluster import wires  # pyroute2 takes half a second, in which the nodes begin

    wires.make_bridge()
    pids = [int(_heard(k, starter)) for k, starter in enumerate(starters)]
    for k, starter in enumerate(starters):
        _heard(k, starter)
    wires.connect_nodes(pids, rate_bytes_per_s)
    nodes = tuple(Node(f"node{k}", network.node_address(k), Process.of(pid)) for k, pid in enumerate(pids))
    keeper = Process.of(os.getpid())
    cluster = Cluster(name, rate_bytes_per_s, send_buffer_bytes, keeper, user_namespace, nodes)
    _write_agent(cluster)
    state.save(cluster)
    print("ready", flush=True)
    signal.sigwait(_ENDING)
    for each, starter in zip(nodes, starters, strict=True):
        if starter.poll() is None:
            with contextlib.suppress(OSError):
                os.kill(each.pid, signal.SIGKILL)
    for starter in starters:
        starter.wait()


def _heard(number: int, starter: subprocess.Popen) -> str:
    """Return the next line of a node that is being set up."""
    line = starter.stdout.readline().strip()
    if not line:
        errors = starter.stderr.read().strip().splitlines()
        sys.exit(f"node{number} cannot be set up: {errors[-1] if errors else 'it ended without a message'}")
    return line


def _start_node(number: int, hosts: Path, send_buffer_bytes: int) -> subprocess.Popen:
    # The keeper is root of the user namespace where there is one: no further one is needed.
    unshare = Mode(user_namespace=False).unshare(*NODE_NAMESPACES, "fork", "kill-child")
    return subprocess.Popen(
        [
            *unshare, sys.executable, "-P", "-m", "earlybird.launch.cluster.node", f"node{number}",
            str(hosts), str(send_buffer_bytes),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_begin_child,
    )  # fmt: skip


def _begin_child() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())


def _hosts(num_nodes: int) -> str:
    lines = ["127.0.0.1 localhost", f"{network.head_address()} head"]
    lines += [f"{network.node_address(k)} node{k}" for k in range(num_nodes)]
    return "\n".join(lines) + "\n"


def _write_agent(cluster: Cluster) -> None:
    """Write the replacement for ssh: it takes ignored options, a node's name, and the command that a shell
    there runs."""
    cases = "\n".join(f"{each.name}|{each.address}) pid={each.pid} ;;" for each in cluster.nodes)
    own, kinds = cluster.mode.enter(0)[3:], [f"--{kind}" for kind in NODE_NAMESPACES]
    text = f"""\
#!/bin/sh
# Runs a command on a node of the virtual cluster {cluster.name}, as ssh would:
# agent [-OPTION]... NODE COMMAND...
while [ "${{1#-}}" != "$1" ]; do shift; done
node=$1
shift
case $node in
{cases}
*) echo "the cluster {cluster.name} has no node $node" >&2; exit 255 ;;
esac
user="{" ".join(own)}"
# A user namespace that one is in already cannot be entered.
[ "$(readlink /proc/self/ns/user)" != "$(readlink /proc/$pid/ns/user)" ] || user=
TMPDIR={node.TEMPORARY} exec nsenter --target $pid $user {" ".join(kinds)} -- /bin/sh -c "$*"
"""
    with state.opened(cluster.name) as folder:
        folder.write_text(state.AGENT, text, mode=0o700)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), sys.argv[5] == "user")
