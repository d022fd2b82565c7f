"""Reads the hosts that a user names: a list, or a file of hosts as launchers and batch systems write it."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from earlybird.data import files, json_text
from earlybird.data.errors import InputError
from earlybird.data.shell_commands import path_argument
from earlybird.data.units import whole_number

# A name or an address, and a user as ssh takes it.
_HOST = re.compile(r"(?:[A-Za-z0-9._][A-Za-z0-9._-]*@)?[A-Za-z0-9._][A-Za-z0-9._-]*")
_ATTRIBUTE = re.compile(r"([A-Za-z_-]+)=(\S*)")
# How many ranks a host gets is for the layout to say, and how they are bound for earlybird.
_IGNORED = ("slots", "max-slots", "max_slots", "maxslots", "cpu", "cpus", "ncpus", "count", "binding")
_USER = ("user", "username")
_RANK = re.compile(r"rank\s+[0-9]+\s*=\s*(\S+)(?:\s+slots?\s*=.*)?", re.IGNORECASE)
# Grid Engine's PE_HOSTFILE: host, slots, queue, processors.
_GRID_ENGINE = re.compile(r"(\S+)\s+[0-9]+\s+\S+@\S+\s+\S+")
_SECTION = re.compile(r"\[[A-Za-z_][^\]\[]*\]")
_IPV6 = re.compile(r"\[?[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.%]*\]?(?::[0-9]+)?")
_ADDRESS = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}")
# What commands of batch systems print above the hosts.
_HEADINGS = (
    "NODELIST",
    "HOSTLIST",
    "HOSTNAMES",
    "HOSTNAME",
    "HOST_NAME",
    "HOSTS",
    "HOST",
    "NODES",
    "NODE",
    "NAME",
)
_REMEDY = (
    "give host names such as node1,node2, or a file with one per line; `scontrol show hostnames` lists those "
    "of a Slurm job"
)


def parse_hosts(text: str) -> tuple[str, ...]:
    """Return the hosts of `a,b,user@c` or of the file of that path.

    Numbers of slots, as in `a:2`, are ignored: the layout determines the number of ranks of a node. The hosts
    of a rank file are taken in the order of its ranks. Raises InputError for a text that is not a host, and
    for a host that is named again.
    """
    if os.path.sep in text or os.path.isfile(text) or text.endswith((".txt", ".hosts")):
        hosts = _hosts_of_file(Path(text))
        _refuse_repeated(
            hosts, f"the host file {text}", f"`sort -u {path_argument(text)} > nodes.txt` leaves one of each"
        )
        return tuple(hosts)
    hosts = [
        _host(_without_slots(entry.strip()), f"--hosts is {text!r}")
        for entry in text.split(",")
        if entry.strip()
    ]
    if not hosts:
        raise InputError(f"--hosts is {text!r}; {_REMEDY}")
    _refuse_repeated(hosts, "--hosts", "name it once")
    return tuple(hosts)


def without_user(host: str) -> str:
    """Return the name of the node itself: node1 for `user@node1`."""
    return host.rpartition("@")[2]


def _hosts_of_file(path: Path) -> list[str]:
    # A remark may be in any encoding; a host is refused by its own form.
    text = files.read_text(path, "host file", errors="surrogateescape")
    _refuse_json(text, path)
    lines = [
        (number, line.partition("#")[0].strip()) for number, line in enumerate(text.splitlines(), start=1)
    ]
    lines = [(number, line) for number, line in lines if line]
    if not lines:
        raise InputError(f"the host file {path} names no host; give one per line")
    ranks = [_RANK.fullmatch(line) for _, line in lines]
    if all(ranks):
        return _hosts_of_ranks([match[1] for match in ranks if match], path)
    hosts = []
    for number, line in lines:
        where = f"the host file {path} line {number}"
        of_line = list(_hosts_of_line(line, where))
        if len(of_line) > 1:
            _require_list_of_lsf(of_line, len(lines), where)
        hosts += of_line
    return hosts


def _refuse_json(text: str, path: Path) -> None:
    try:
        value = json_text.parse_json(text)
    except ValueError:
        return
    if isinstance(value, list | dict):
        raise InputError(f"the host file {path} is JSON; give a host per line")


def _hosts_of_ranks(hosts: Sequence[str], path: Path) -> list[str]:
    """Return the hosts of a rank file, each once."""
    if relative := next((host for host in hosts if host.startswith("+")), None):
        raise InputError(
            f"the host file {path} is a rank file that names nodes by number, such as {relative}; give a "
            "host per line"
        )
    return list(dict.fromkeys(_host(host, f"the rank file {path} has {host!r}") for host in hosts))


def _hosts_of_line(line: str, where: str) -> Iterator[str]:
    """Yield the hosts of a line: a host with its slots, or several as in LSB_HOSTS and LSB_MCPU_HOSTS of
    LSF."""
    if _SECTION.fullmatch(line):
        raise InputError(
            f"{where}: {line} is a group of an inventory, such as Ansible's; give a host per line, as "
            "`ansible all --list-hosts` prints them"
        )
    if _RANK.match(line):
        raise InputError(
            f"{where}: {line[:40]!r} is of a rank file, and other lines are not; give a host per line"
        )
    if match := _GRID_ENGINE.fullmatch(line):
        line = match[1]
    host, user = "", ""
    for item in line.split():
        attribute = _ATTRIBUTE.fullmatch(item)
        if attribute and host and attribute[1].lower() in _USER:
            user = attribute[2]
        elif attribute:
            _refuse_attribute(attribute[1], host, where)
        elif not (host and whole_number(item) is not None):
            if host:
                yield _with_user(host, user, where)
            host, user = _without_slots(item), ""
            _host(host, f"{where} has {item[:40]!r}")
            if host in _HEADINGS:
                raise InputError(f"{where} has the heading {host}; remove it, and give a host per line")
    yield _with_user(host, user, where)


def _require_list_of_lsf(hosts: Sequence[str], num_lines: int, where: str) -> None:
    """Raise InputError unless the hosts of a line can be those of LSF, whose lists have one line."""
    addresses = [host for host in hosts if _ADDRESS.fullmatch(without_user(host))]
    if num_lines > 1 or len(addresses) not in (0, len(hosts)):
        why = "an address and a name" if len(addresses) not in (0, len(hosts)) else "several words"
        raise InputError(
            f"{where} has {why}, {' '.join(hosts)[:40]!r}, which may be one node; give a host per line, and "
            "nothing but its slots after it"
        )


def _refuse_attribute(name: str, host: str, where: str) -> None:
    if name.startswith("ansible_"):
        raise InputError(
            f"{where}: {name} is of an Ansible inventory; give a host per line, as `ansible all "
            "--list-hosts` prints them"
        )
    if not host or name.lower() not in _IGNORED:
        raise InputError(
            f"{where}: {name}= is not known of a host; give a host per line, such as node1 or node1:4"
        )


def _with_user(host: str, user: str, where: str) -> str:
    return _host(f"{user}@{without_user(host)}", where) if user else host


def _without_slots(entry: str) -> str:
    """Return the host name in `node1:4`."""
    host, _, slots = entry.partition(":")
    return host if whole_number(slots) is not None else entry


def _host(host: str, given: str) -> str:
    if _IPV6.fullmatch(host):
        raise InputError(
            f"{given}, an IPv6 address, which host files cannot hold, as a colon begins a number of slots; "
            "give a name that /etc/hosts or DNS has for it"
        )
    if not _HOST.fullmatch(host):
        raise InputError(f"{given}; {_REMEDY}")
    if without_user(host).isdecimal():
        # ssh takes it for an address.
        raise InputError(f"{given}, a number, which is no host; {_REMEDY}")
    return host


def _refuse_repeated(hosts: Sequence[str], given: str, remedy: str) -> None:
    count = Counter(map(_node, hosts))
    if repeated := next((host for host in hosts if count[_node(host)] > 1), None):
        raise InputError(
            f"{given} names {without_user(repeated)} {count[_node(repeated)]} times, but each is a node of "
            f"the layout, which says how many ranks it has; {remedy}"
        )


def _node(host: str) -> str:
    """Return a key that is equal for all names that obviously refer to one host."""
    name = without_user(host).lower()
    return "localhost" if name == "127.0.0.1" else name
