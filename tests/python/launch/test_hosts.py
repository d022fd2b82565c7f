"""Hosts are read from a list or a file of a launcher or batch system; what is no host is refused."""

import pytest

from earlybird.data.errors import InputError
from earlybird.launch.hosts import parse_hosts


@pytest.fixture
def hosts_of(tmp_path):
    """The hosts of a file with this text."""

    def parse(text: str | bytes):
        path = tmp_path / "hosts.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return parse_hosts(str(path))

    return parse


def test_hosts_come_as_a_list():
    assert parse_hosts("node1, node2") == parse_hosts("node1:2,node2:16") == ("node1", "node2")
    assert parse_hosts("me@node1:2,10.0.0.2") == ("me@node1", "10.0.0.2")


@pytest.mark.parametrize(
    "text",
    [
        "# comment\nnode1 slots=4\n\nnode2:8  # the other\n",
        "node1 slots=2 max_slots=20\r\nnode2\tslots=2 max-slots=20\r\n",
        "\ufeffnode1 cpu=2\nnode2 binding=user:0,1\n",
        "node1 4\nnode2 4\n",
        "node1 node2\n",
        "node1 4 node2 4\n",
        "# LSB_MCPU_HOSTS\n\nnode1 4 node2 4\n",
        "node1 4 all.q@node1 UNDEFINED\nnode2 4 all.q@node2 <NULL>\n",
        "rank 0=node1 slot=0\nrank 1=node2 slot=0:0-1\nrank 2=node1 slots=1\n",
        "# by a launcher\nrank 0 = node1 slot=p0:0\nRANK 1=node2\n",
    ],
)
def test_files_of_launchers_and_batch_systems_are_read(hosts_of, text):
    assert hosts_of(text) == ("node1", "node2")


def test_addresses_of_a_line_are_hosts(hosts_of):
    assert hosts_of("10.0.0.1 4 10.0.0.2 4\n") == ("10.0.0.1", "10.0.0.2")


def test_users_are_kept(hosts_of):
    assert hosts_of("user1@node1:2\nuser2@node2 slots=2\n") == ("user1@node1", "user2@node2")
    assert hosts_of("node1:2 user=me\nnode2 username=you\n") == ("me@node1", "you@node2")
    assert hosts_of("rank 0=me@node1 slot=0\n") == ("me@node1",)


@pytest.mark.parametrize(
    "text",
    ["", ",", "a b", "2", "node1,2", "-f", "node1;reboot", "node1:", "node1:x", ":2", "a@", "@a", "a@-f"],
)
def test_what_is_no_host_is_refused(text):
    with pytest.raises(InputError, match="--hosts is"):
        parse_hosts(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("A\nA\nB\n", "names A 2 times.*`sort -u .*hosts.txt > nodes.txt`"),
        ("me@a\na:2\n", "names a 2 times"),
        ("", "names no host"),
        ("# none\n", "names no host"),
        ("node[01-04]\n", "'node.01-04.'.*scontrol show hostnames"),
        ("[cluster]\n127.0.0.1 ansible_connection=local\n", r"line 1: \[cluster\] is a group .*Ansible"),
        ("web ansible_host=10.0.0.1\n", "line 1: ansible_host is of an Ansible inventory"),
        ("all:\n  hosts:\n    node1:\n", "line 1 has 'all:'"),
        ('["node1", "node2"]\n', "is JSON; give a host per line"),
        ('{"nodes": ["node1"]}\n', "is JSON"),
        ("rank 0=+n0 slot=0\n", "rank file that names nodes by number, such as .n0"),
        ("rank 0=node1 slot=0\nnode2\n", "line 1: 'rank 0=node1 slot=0' is of a rank file"),
        ("fe80::1\n", "IPv6 address"),
        ("[2001:db8::1]:4\n", "IPv6 address"),
        ("node1 port=22\n", "line 1: port= is not known"),
        ("node1\nnode2 -oProxyCommand=x\n", "line 2"),
        ("node1\n-f\n", "line 2 has '-f'"),
        ("slots=4\n", "line 1: slots= is not known"),
        (b"\xff\xfe\n", r"line 1 has .*udcff.*; give host names"),
        ("10.0.0.1 node1\n10.0.0.2 node2\n", "line 1 has an address and a name, '10.0.0.1 node1', which may"),
        ("10.0.0.1 node1\n", "line 1 has an address and a name"),
        ("node1 10.0.0.1 # ssh\n", "line 1 has an address and a name"),
        ("node1\nnode2 up infinite\n", "line 2 has several words, 'node2 up infinite', which"),
        ("Host node1\n  HostName 10.0.0.1\n", "line 1 has several words"),
        ("NODELIST\nnode1\nnode2\n", "line 1 has the heading NODELIST; remove it"),
        ("HOST_NAME slots\nnode1 4\n", "line 1 has the heading HOST_NAME"),
        ("2\nnode1\nnode2\n", "line 1 has '2', a number, which is no host"),
        ("3\n", "line 1 has '3', a number"),
        ("NODE1\nnode1\n", "names NODE1 2 times"),
        ("localhost\n127.0.0.1\n", "names localhost 2 times"),
    ],
)  # fmt: skip
def test_what_is_no_file_of_hosts_is_refused_by_line(hosts_of, text, says):
    with pytest.raises(InputError, match=says) as refused:
        hosts_of(text)
    assert "\n" not in str(refused.value)


def test_a_repeated_host_of_a_list_is_refused():
    with pytest.raises(InputError, match=r"--hosts names a 3 times.*name it once"):
        parse_hosts("a,b,a,a:2")


def test_a_host_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="none does not exist"):
        parse_hosts(str(tmp_path / "none"))


def test_a_remark_in_another_encoding_leaves_the_hosts_readable(tmp_path):
    (tmp_path / "hosts.txt").write_bytes("# Müllers Knoten\nnode1\nnode2 # für später\n".encode("latin-1"))
    assert parse_hosts(str(tmp_path / "hosts.txt")) == ("node1", "node2")
    (tmp_path / "hosts.txt").write_bytes("node1\nMünchen\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"line 2 has 'M.*; give host names"):
        parse_hosts(str(tmp_path / "hosts.txt"))
