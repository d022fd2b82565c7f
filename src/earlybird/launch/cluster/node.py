"""The first process of a virtual node: gives the node a name, its own /proc and /dev/shm, and settings of
TCP; and reaps what dies in it.

The keeper starts it in fresh namespaces and reads its process number; when it ends, the kernel ends every
process of the node.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from earlybird.launch.cluster import network

TEMPORARY = "/dev/shm/tmp"  # in every node: daemons of Open MPI that share a folder for sessions collide
_TCP = Path("/proc/sys/net/ipv4")
# Links then carry the same on every machine and after every pause. With a kernel's usual buffers, which grow
# with what a connection carried before, launches of one exchange differ; with BBR, links that several
# connections share carry less than one connection does.
_TCP_SETTINGS = {
    "tcp_congestion_control": network.CONGESTION_CONTROL,
    "tcp_slow_start_after_idle": "0",
    "tcp_moderate_rcvbuf": "0",
    "tcp_rmem": f"4096 {network.RECEIVE_BUFFER_BYTES} {network.RECEIVE_BUFFER_BYTES}",
}


def main(name: str, hosts_file: str, send_buffer_bytes: str) -> None:
    # /proc is still that of the machine here, so this is our number as the keeper sees it.
    print(os.readlink("/proc/self"), flush=True)
    socket.sethostname(name)
    # Nothing mounted here must reach the machine.
    _run("mount", "--make-rprivate", "/")
    _run("mount", "-t", "proc", "proc", "/proc")
    _run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/dev/shm")
    Path(TEMPORARY).mkdir(mode=0o1777)
    if Path("/etc/hosts").exists():
        _run("mount", "--bind", hosts_file, "/etc/hosts")
    _set_tcp(_TCP_SETTINGS | {"tcp_wmem": f"4096 {send_buffer_bytes} {send_buffer_bytes}"})
    print("ready", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel then reaps the orphans that end up here
    while True:
        signal.pause()


def _set_tcp(settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        path = _TCP / name
        try:
            path.write_text(value)
        except OSError as error:
            sys.exit(
                f"{path} cannot be set to {value}: {error.strerror}; network namespaces have this setting "
                "since Linux 4.15"
            )


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main(*sys.argv[1:])
