"""Measures a cluster's links on one node: streams of bytes, or a byte back and forth, over TCP.

It reads its task, prints its port, reads the ports of all workers and prints its measurements, as lines of
JSON.
"""

import json
import socket
import statistics
import sys
import threading
import time

# Nobody waits for ever for a node that has died.
_SILENCE_S = 5.0
_ROUND_TRIPS = 200
_CHUNK_BYTES = 1 << 18
# The first part of a stream is not counted: windows open, queues fill.
_WARMUP_SHARE = 0.3


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    socket.setdefaulttimeout(_SILENCE_S)
    with socket.create_server(("", 0), backlog=64) as listener:
        listener.settimeout(_SILENCE_S)
        _answer({"port": listener.getsockname()[1]})
        if not (line := sys.stdin.readline()):
            return  # the parent has ended
        measure = {"stream": _stream, "ping": _ping, "pong": _pong}[asked["mode"]]
        _answer(measure(asked, json.loads(line), listener))


def _answer(answer: dict[str, float]) -> None:
    print(json.dumps(answer), flush=True)


def _stream(asked, ports, listener) -> dict[str, float]:
    begin_s = time.monotonic()
    first_s, end_s = begin_s + _WARMUP_SHARE * asked["for_s"], begin_s + asked["for_s"]
    for address in asked["targets"]:
        threading.Thread(target=_send, args=(address, ports[address], end_s), daemon=True).start()
    counts = [0] * asked["incoming"]

    def receive(k: int, connection: socket.socket) -> None:
        buffer = bytearray(_CHUNK_BYTES)
        while size := connection.recv_into(buffer):
            now_s = time.monotonic()
            if now_s > end_s:
                return
            counts[k] += size if now_s >= first_s else 0

    receivers = []
    for k in range(asked["incoming"]):
        connection, _ = listener.accept()
        connection.settimeout(_SILENCE_S)
        receivers.append(threading.Thread(target=receive, args=(k, connection), daemon=True))
        receivers[-1].start()
    for thread in receivers:
        thread.join()
    time.sleep(max(0.0, end_s - time.monotonic()))
    return {"received_bytes_per_s": sum(counts) / (end_s - first_s)}


def _send(address: str, port: int, end_s: float) -> None:
    chunk = bytes(_CHUNK_BYTES)
    with socket.create_connection((address, port)) as connection:
        try:
            while time.monotonic() < end_s:
                connection.sendall(chunk)
        except OSError:
            return  # the receiver has seen enough


def _ping(asked, ports, listener) -> dict[str, float]:
    times_s = []
    with socket.create_connection((asked["address"], ports[asked["address"]])) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(_ROUND_TRIPS):
            begin_s = time.perf_counter()
            connection.sendall(b".")
            connection.recv(1)
            times_s.append(time.perf_counter() - begin_s)
    return {"latency_s": statistics.median(times_s) / 2}


def _pong(asked, ports, listener) -> dict[str, float]:
    connection, _ = listener.accept()
    connection.settimeout(_SILENCE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection:
        while data := connection.recv(1):
            connection.sendall(data)
    return {}


if __name__ == "__main__":
    main()
