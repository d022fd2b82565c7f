"""The first process of a virtual node: gives the node a name, its own /proc and /dev/shm, and reaps what dies
in it.

The keeper starts it in fresh namespaces and reads its process number; when it ends, the kernel ends every
process of
the node.
"""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

TEMPORARY = "/dev/shm/tmp"  # in every node: daemons of Open MPI that share a folder for sessions collide


def main(name: str, hosts_file: str) -> None:
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
    print("ready", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel then reaps the orphans that end up here
    while True:
        signal.pause()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main(*sys.argv[1:])
