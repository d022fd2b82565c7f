"""What three MPIs get through a virtual cluster's links: ping-pong, contention, incast, the early-bird
effect.

The reference is the limit of the link: TCP over frames of 1500 bytes carries 1448/1514 of the rate.
"""

import tempfile
from pathlib import Path
from typing import Any

from bench.commands import built_mpis, earlybird, say, virtual_cluster
from earlybird.data.units import format_bandwidth, format_bytes
from earlybird.launch.cluster import network
from earlybird.present.render.terminal import print_rows

LAUNCHES = 5
FAST, SLOW = 125e6, 25e6  # bytes per second of 1 Gbit/s and 200 Mbit/s
# gamma*beta = 2.5 at what TCP carries of 200 Mbit/s: equation (4) of Gillis et al. 2023 says 2.67 for 4
# partitions.
GAMMA_S_PER_BYTE = 2.5 / network.payload_bytes_per_s(SLOW)
# Open MPI 5.0 sends messages over TCP by a handshake from 64 KiB on, which makes no progress while the sender
# computes; this has it send the partitions measured here at once.
EAGER = {
    "openmpi": {
        "OMPI_MCA_btl_tcp_eager_limit": "1048576",
        "OMPI_MCA_btl_tcp_rndv_eager_limit": "1048576",
    }
}


def main() -> int:
    """Measure all of it and print the tables."""
    mpis = built_mpis()
    with tempfile.TemporaryDirectory() as folder:
        with virtual_cluster(2, "1gbit") as name:
            _pingpong(mpis, name, Path(folder))
        with virtual_cluster(4, "200mbit") as name:
            _contention(mpis, name, Path(folder))
            _incast(mpis, name, Path(folder))
            _early_bird(mpis, name, Path(folder))
    return 0


def _common(mpi: str, name: str, run: Path) -> list[Any]:
    return ["--mpi", mpi, "--launcher", f"cluster:{name}", "--launches", LAUNCHES, "--quiet", "-o", run]


def _pingpong(mpis: list[str], name: str, folder: Path) -> None:
    say("ping-pong between two nodes at 1 Gbit/s")
    rows = []
    for mpi in mpis:
        output = earlybird(
            "measure", "pingpong", "--levels", "inter_node", "--sizes", "8,64KiB,1MiB,4MiB",
            "--budget", "20s", *_common(mpi, name, folder / f"pingpong-{mpi}"),
        )  # fmt: skip
        rows += [_link_row(mpi, point, FAST) for point in output["points"] if point["size_bytes"] >= 1 << 16]
    print("\nPing-pong between two nodes, 1 Gbit/s")
    print_rows(["MPI", "N", "size", "received", "of what TCP can"], rows)


def _contention(mpis: list[str], name: str, folder: Path) -> None:
    say("contention for the link of a node at 200 Mbit/s")
    rows = []
    for mpi in mpis:
        output = earlybird(
            "measure", "contention", "--levels", "inter_node", "--competitors", "1,2,4", "--sizes",
            "64KiB,1MiB", "--budget", "40s", *_common(mpi, name, folder / f"contention-{mpi}"),
        )  # fmt: skip
        rows += [_link_row(mpi, point, SLOW) for point in output["points"]]
    print("\nN processes of each of two nodes send and receive at once, 200 Mbit/s, both directions busy")
    print_rows(["MPI", "N", "size", "received", "of what TCP can"], rows)


def _incast(mpis: list[str], name: str, folder: Path) -> None:
    say("three nodes to one at 200 Mbit/s")
    size_bytes = 1_000_000
    pattern = folder / "incast.csv"
    pattern.write_text("src,dst,bytes\n" + "".join(f"{rank},0,{size_bytes}\n" for rank in (1, 2, 3)))
    rows = []
    for mpi in mpis:
        run = folder / f"incast-{mpi}"
        output = earlybird(
            "replay", pattern, "--layout", "4x1x1", "--budget", "15s", *_common(mpi, name, run)
        )
        time_s = max(output["measured_s"])
        received = 3 * size_bytes / time_s
        rows.append([mpi, format_bandwidth(received), f"{received / network.payload_bytes_per_s(SLOW):.3f}"])
    print("\nThree nodes send 1 MB each to the fourth, 200 Mbit/s")
    print_rows(["MPI", "received", "of what TCP can"], rows)


def _early_bird(mpis: list[str], name: str, folder: Path) -> None:
    say("the early-bird effect at 200 Mbit/s")
    rows = []
    for mpi in mpis:
        runs = [(mpi, None)] + ([(f"{mpi}, eager up to 1 MiB", EAGER[mpi])] if mpi in EAGER else [])
        for label, env in runs:
            output = earlybird(
                "measure", "pipeline", "--levels", "inter_node", "--sizes", "1MiB", "--partitions", 4,
                "--gamma", f"{GAMMA_S_PER_BYTE!r}", "--budget", "30s",
                *_common(mpi, name, folder / f"pipeline-{mpi}-{len(rows)}"), env=env,
            )  # fmt: skip
            many = next(point for point in output["points"] if point["method"] == "many")
            rows.append([
                label, f"{many['speed_up']:.2f}",
                f"{many['speed_up_low']:.2f} .. {many['speed_up_high']:.2f}", f"{many['ideal_speed_up']:.2f}",
                f"{many['speed_up'] / many['ideal_speed_up']:.3f}",
            ])  # fmt: skip
    print("\n1 MiB in 4 partitions, the last delayed: one message per partition against one for all")
    print_rows(["MPI", "speed-up over single", "interval", "equation (4)", "measured / equation"], rows)


def _link_row(mpi: str, point: dict[str, Any], rate_bytes_per_s: float) -> list[Any]:
    received = point["bandwidth_bytes_per_s"]
    share = received / network.payload_bytes_per_s(rate_bytes_per_s)
    size = format_bytes(point["size_bytes"])
    return [mpi, point.get("competitors", 1), size, format_bandwidth(received), f"{share:.3f}"]
