"""Whether Linux namespaces can be created, as root or inside an unprivileged user namespace, and the
obstacles."""

import functools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from earlybird.data.errors import InputError

_TOOLS = ("unshare", "nsenter", "setpriv", "mount", "taskset")
_PROBE_LIMIT_S = 20.0
# A switch of the kernel -> the value that forbids user namespaces to ordinary users, and the remedy.
_SWITCHES = {
    "kernel/unprivileged_userns_clone": ("0", "sysctl kernel.unprivileged_userns_clone=1"),
    "user/max_user_namespaces": ("0", "sysctl user.max_user_namespaces=15000"),
    "kernel/apparmor_restrict_unprivileged_userns": (
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
}


@dataclass(frozen=True)
class Mode:
    """A mode of creating namespaces: directly, or inside one user namespace where an ordinary user is
    root."""

    user_namespace: bool

    def unshare(self, *kinds: str) -> list[str]:
        """Return the arguments before a program that gets new namespaces, such as `net` or `pid`, in addition
        to those of the mode."""
        own = ["--user", "--map-root-user"] if self.user_namespace else []
        return ["unshare", *own, *(f"--{kind}" for kind in kinds)]

    def enter(self, pid: int, *kinds: str) -> list[str]:
        """Return the arguments before a program that joins namespaces of the process `pid`."""
        # The credentials are already those of the user namespace's root; setting them again is not permitted.
        own = ["--user", "--preserve-credentials"] if self.user_namespace else []
        return ["nsenter", "--target", str(pid), *own, *(f"--{kind}" for kind in kinds)]


@dataclass(frozen=True)
class Refusal:
    """The reason why no virtual network can be created, and the remedy."""

    cause: str
    remedy: str


@functools.cache
def find_mode() -> Mode | Refusal:
    """Return how to create a network of namespaces, tested in a child process that leaves nothing behind."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return Refusal(f"{', '.join(missing)} (util-linux) is not on PATH", "install the package util-linux")
    errors = []
    for mode in (Mode(user_namespace=False), Mode(user_namespace=True)):
        command = [*mode.unshare("net", "uts", "ipc", "pid", "mount", "fork", "kill-child", "mount-proc")]
        probe = [*command, sys.executable, "-m", "earlybird.machine.namespaces"]
        try:
            result = subprocess.run(probe, capture_output=True, text=True, timeout=_PROBE_LIMIT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            return Refusal(f"namespaces cannot be tried out: {error}", "run `unshare --net true` to see why")
        if result.returncode == 0:
            return mode
        errors.append((result.stderr.strip() or result.stdout.strip() or "no reason given").splitlines()[-1])
    return _explain(errors)


def require_mode() -> Mode:
    """Return what `find_mode` returns; raise InputError, stating the missing permission and how to get it,
    for a Refusal."""
    mode = find_mode()
    if isinstance(mode, Refusal):
        raise InputError(f"a virtual cluster cannot be created here: {mode.cause}; {mode.remedy}")
    return mode


def _explain(errors: list[str], folder: Path = Path("/proc/sys"), user: int | None = None) -> Refusal:
    """Return the refusal that follows from `errors`, root's mode first, and from the switches in `folder` for
    the user `user`."""
    if (os.geteuid() if user is None else user) == 0:
        return Refusal(
            f"root's mode does not work ({errors[0]}): CAP_SYS_ADMIN and CAP_NET_ADMIN are missing, or a "
            "filter of system calls forbids unshare",
            "allow the container both, and the system calls unshare and setns (docker run --privileged does)",
        )
    for name, (forbidden, remedy) in _SWITCHES.items():
        path = folder / name
        if path.is_file() and path.read_text().strip() == forbidden:
            return Refusal(
                "CAP_SYS_ADMIN and CAP_NET_ADMIN are missing, and "
                f"{name.replace('/', '.')} is {forbidden}, which denies user namespaces",
                f"run as root, or have root run `{remedy}`",
            )
    return Refusal(
        f"CAP_SYS_ADMIN and CAP_NET_ADMIN are missing, and a user namespace does not work ({errors[-1]})",
        "run as root; in a container allow the system calls unshare and setns (docker run --privileged does)",
    )


def _try_network() -> None:
    """Create, in new namespaces, the devices and the shaping that a cluster consists of."""
    from pyroute2 import IPRoute

    with IPRoute() as network:
        network.link("add", ifname="bridge", kind="bridge")
        network.link("add", ifname="port", kind="veth", peer={"ifname": "end"})
        port = network.link_lookup(ifname="port")[0]
        network.tc("add", "tbf", index=port, handle="1:", rate="1mbit", burst=10000, limit=100000)


if __name__ == "__main__":
    try:
        _try_network()
    except Exception as error:
        sys.exit(f"bridge, veth or tbf: {error}")
