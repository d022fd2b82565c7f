"""Start a kernel's ranks on a machine that SimGrid simulates: its platform and the core of each rank."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from earlybird.data.errors import InputError
from earlybird.data.layout import Layout
from earlybird.data.simulated_machine import SimulatedMachine
from earlybird.data.simulated_network import Dragonfly, FatTree
from earlybird.launch.job import Job, run_kernel
from earlybird.launch.launcher import Heard, Launched, Request
from earlybird.launch.mpiexec import Invocation
from earlybird.machine.flavours import Flavour

# Settings of SMPI, such as smpi/bcast:binomial_tree, begin so; a request holds them among its variables.
SETTING = "smpi/"
_MAX_EAGER_BYTES = 2**31 - 1  # an int of SimGrid; messages of MPI_BYTE are not longer
# Latencies are tenths of microseconds: SimGrid's own step, 1e-5 s, and smpirun's, 1e-9 s, would round them.
_PRECISION = "1e-12"
_STALL_CAUSE = "a rank hangs or died, or the simulation takes longer: give a larger --stall-limit"


@dataclass(frozen=True)
class SimgridLauncher:
    """A launcher of ranks simulated by SMPI on the cores of `machine`; times are those of the simulation, and
    exact."""

    mpi: Flavour
    machine: SimulatedMachine
    name: str = "simgrid"

    @property
    def flavour(self) -> str:
        return self.mpi.label

    @property
    def network(self) -> str:
        return self.machine.describe()

    def check(self, layout: Layout) -> None:
        cores_of_ranks(layout, self.machine)

    def shares_cores(self, layout: Layout) -> bool:
        return False

    def launch(self, request: Request, scratch: Path, progress: Heard) -> Launched:
        if request.threads not in (None, 1):
            raise InputError(
                f"{request.threads} threads per rank were requested and a simulated rank has one"
            )
        hosts = scratch / "hosts.txt"
        hosts.write_text("".join(f"{core}\n" for core in cores_of_ranks(request.layout, self.machine)))
        platform = scratch / "platform.xml"
        platform.write_text(platform_xml(self.machine))
        settings = {name: value for name, value in request.environment.items() if name.startswith(SETTING)}
        others = {name: value for name, value in request.environment.items() if name not in settings}
        configuration = smpi_configuration(self.machine, request.layout.num_ranks, hosts) | settings
        configuration |= {"smpi/tmpdir": str(scratch), "smpi/privatization": "dlopen"}
        invocation = Invocation(
            (str(self.mpi.mpiexec),),
            after_program=(
                *(f"--cfg={name}:{value}" for name, value in configuration.items()),
                "--log=root.thres:warning",
                str(platform),
            ),
        )
        extra = {"network": self.network, "simulated_machine": self.machine.to_json(), "smpi": settings}
        job = Job(self.name, self.mpi, "core", extra=extra, one_clock=True, stall_cause=_STALL_CAUSE)
        return run_kernel(job, invocation, replace(request, environment=others), scratch, progress)


def smpi_configuration(machine: SimulatedMachine, num_ranks: int, hosts: Path) -> dict[str, str]:
    """Return the settings of SMPI for ranks on `machine`, on the cores that the file `hosts` lists."""
    eager_bytes = str(min(machine.eager_bytes, _MAX_EAGER_BYTES))
    return {
        "smpi/np": str(num_ranks),
        "smpi/hostfile": str(hosts),
        # Only messages take time: the time to simulate is unrelated to the simulated time.
        "smpi/simulate-computation": "no",
        "smpi/wtime": "0",
        "surf/precision": _PRECISION,
        "network/model": "SMPI",
        # SMPI's own factors are those of TCP over gigabit Ethernet in 2009.
        "smpi/bw-factor": "0:1",
        "smpi/lat-factor": "0:1",
        "network/crosstraffic": "0",
        # By default a route of more links gets less of the bandwidth that it shares, as over TCP.
        **({"network/weight-S": "0"} if machine.network else {}),
        "smpi/os": f"0:{machine.send_overhead_s:.12g}:0",
        "smpi/ois": f"0:{machine.send_overhead_s:.12g}:0",
        "smpi/or": f"0:{machine.receive_overhead_s:.12g}:0",
        "smpi/async-small-thresh": eager_bytes,
        "smpi/send-is-detached-thresh": eager_bytes,
    }


def cores_of_ranks(layout: Layout, machine: SimulatedMachine) -> list[str]:
    """Return the simulated host of every rank, a core each; raise InputError if `machine` has too few."""
    machine.check(layout)
    taken: Counter[tuple[int, int]] = Counter()
    cores = []
    for node, socket in zip(layout.node.tolist(), layout.socket.tolist(), strict=True):
        cores.append(_core(node, socket, taken[node, socket]))
        taken[node, socket] += 1
    return cores


def platform_xml(machine: SimulatedMachine) -> str:
    """Return SimGrid's description of `machine`.

    A message passes the link of its sender's core, the memory of the socket, what lies between sockets or
    nodes, and the link of its receiver's core. Links of one message alone (FATPIPE) limit each message, those
    of all (SHARED, or SPLITDUPLEX where the two directions differ) are shared by the messages in flight. With
    a network a message between nodes also passes the links between its switches.
    """
    inside = machine.levels["intra_socket"]
    own_s = (inside.latency_s - machine.overheads_s) / 2
    lines = [
        "<?xml version='1.0'?>",
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
        '<platform version="4.1">',
        '<zone id="machine" routing="Full">',
    ]
    for node in range(machine.nodes):
        lines += _node(machine, node, own_s)
    lines += _link("between-nodes", machine, "inter_node")
    lines += _switches(machine, machine.network) if machine.network else _crossbar(machine.nodes)
    return "\n".join([*lines, "</zone>", "</platform>", ""])


def _crossbar(nodes: int) -> list[str]:
    return [
        _between_nodes(one, other, "") for one in range(nodes) for other in range(one + 1, nodes)
    ]  # fmt: skip


def _switches(machine: SimulatedMachine, network: FatTree | Dragonfly) -> list[str]:
    """Return the links between switches and, because the two directions of a pair may take different routes,
    all routes."""
    nic = machine.nic_bandwidth_bytes_per_s
    lines = [
        _shared_link(link.name, link.bandwidth_bytes_per_s or nic, network.hop_latency_s)
        for link in network.links(machine.nodes)
    ]
    for src in range(machine.nodes):
        for dst in range(machine.nodes):
            if src != dst:
                hops = "".join(
                    f'<link_ctn id="{hop.link}" direction="{"UP" if hop.up else "DOWN"}"/>'
                    for hop in network.route(src, dst)
                )
                lines.append(_between_nodes(src, dst, hops, ' symmetrical="NO"'))
    return lines


def _between_nodes(src: int, dst: int, hops: str, symmetrical: str = "") -> str:
    return (
        f'<zoneRoute src="node{src}" dst="node{dst}" gw_src="node{src}-router" gw_dst="node{dst}-router"'
        f'{symmetrical}><link_ctn id="between-nodes"/>{hops}</zoneRoute>'
    )


def _shared_link(name: str, bandwidth_bytes_per_s: float, latency_s: float = 0) -> str:
    """Return a link whose messages share its bandwidth, separately for each direction."""
    return (
        f'<link id="{name}" bandwidth="{bandwidth_bytes_per_s:.12g}Bps" latency="{latency_s:.12g}s" '
        'sharing_policy="SPLITDUPLEX"/>'
    )


def _node(machine: SimulatedMachine, node: int, own_s: float) -> list[str]:
    name = f"node{node}"
    lines = [f'<zone id="{name}" routing="Full">']
    for socket in range(machine.sockets):
        lines.append(
            f'<cluster id="{name}-socket{socket}" prefix="{name}-socket{socket}-core" suffix="" '
            f'radical="0-{machine.cores - 1}" speed="1Gf" '
            f'bw="{machine.levels["intra_socket"].bandwidth_bytes_per_s:.12g}Bps" lat="{own_s:.12g}s" '
            f'bb_bw="{machine.socket_bandwidth_bytes_per_s:.12g}Bps" bb_lat="0s" '
            f'router_id="{name}-socket{socket}-router"/>'
        )
    lines += [f'<zone id="{name}-edge" routing="None"><router id="{name}-router"/></zone>']
    lines += _link(f"{name}-message", machine, "inter_socket")
    for part, bandwidth in (
        ("sockets", machine.sockets_bandwidth_bytes_per_s),
        ("nic", machine.nic_bandwidth_bytes_per_s),
    ):
        lines.append(_shared_link(f"{name}-{part}", bandwidth))
    for one in range(machine.sockets):
        for other in range(one + 1, machine.sockets):
            lines.append(_route(name, f"socket{one}", f"socket{other}", f"{name}-message", f"{name}-sockets"))
        lines.append(
            f'<zoneRoute src="{name}-socket{one}" dst="{name}-edge" gw_src="{name}-socket{one}-router" '
            f'gw_dst="{name}-router"><link_ctn id="{name}-nic" direction="UP"/></zoneRoute>'
        )
    return [*lines, "</zone>"]


def _route(node: str, one: str, other: str, message: str, shared: str) -> str:
    return (
        f'<zoneRoute src="{node}-{one}" dst="{node}-{other}" gw_src="{node}-{one}-router" '
        f'gw_dst="{node}-{other}-router"><link_ctn id="{message}"/><link_ctn id="{shared}" direction="UP"/>'
        "</zoneRoute>"
    )


def _link(name: str, machine: SimulatedMachine, level: str) -> list[str]:
    """Return the links that messages of `level` use in addition to those of the two cores."""
    cost = machine.levels[level]
    beyond_s = cost.latency_s - machine.levels["intra_socket"].latency_s
    return [
        f'<link id="{name}" bandwidth="{cost.bandwidth_bytes_per_s:.12g}Bps" latency="{beyond_s:.12g}s" '
        'sharing_policy="FATPIPE"/>'
    ]


def _core(node: int, socket: int, core: int) -> str:
    """Return the name of a core, which native/harness/machine/simulated.cpp parses."""
    return f"node{node}-socket{socket}-core{core}"
