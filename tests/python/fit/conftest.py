"""Run folders written from known parameters, for the tests of fit."""

import numpy as np
import pytest

from earlybird.data.run import Run, Sample

LAUNCH = {"flavour": "mpich", "version": "5.0.2", "transport": "shm", "launcher": "local"}
MACHINE = {"cpu_model": "Test CPU", "cores": 8, "sockets": 1, "host": "testhost"}


@pytest.fixture
def make_run(tmp_path):
    """make_run(name, time_s, ns=..., sizes=...) writes samples of time_s(n, size) and returns the folder."""

    def make(
        name,
        time_s=lambda n, size: 2e-6 + size / 1e10,
        *,
        ns=(1, 2, 4),
        sizes=tuple(2**k for k in range(10, 23)),
        launches=5,
        noise=0.0,
        kernel="contention",
        level="intra_socket",
        launch=None,
        machine=None,
        oversubscribed=lambda n: False,
        seed=1,
        **flags,
    ):
        path = tmp_path / name
        run = (
            Run.open(path)
            if path.exists()
            else Run.create(
                path, machine=MACHINE | (machine or {}), command=["earlybird", "measure"], seed=seed
            )
        )
        generator = np.random.default_rng(seed)
        first = len(run.launches())
        for number in range(first, first + launches):
            run.append_launch({"id": f"launch{number}"} | LAUNCH | (launch or {}))
            run.append_samples(
                _sample(
                    kernel,
                    level,
                    n,
                    size,
                    time_s(n, size),
                    f"launch{number}",
                    generator,
                    noise,
                    oversubscribed(n),
                    flags,
                )
                for n in ns
                for size in sizes
            )
        return path

    return make


def _sample(kernel, level, n, size, time_s, launch, generator, noise, oversubscribed, flags):
    config = {"mpi": "mpich", "level": level, "size_bytes": size}
    if kernel == "contention":
        quantity = "time_per_repeat"
        config |= {"competitors": n, "repeats": 10} | {k: v for k, v in flags.items() if k == "buffers"}
    else:
        quantity = "half_round_trip"
        config["buffers"] = flags.get("buffers", "vary")
    times = time_s * (1 + noise * generator.standard_normal(5))
    rest = {key: value for key, value in flags.items() if key != "buffers"}
    # The first entry is a transient: a fit that counts it is far off.
    return Sample(
        kernel,
        quantity,
        config,
        launch,
        np.concatenate([[10 * time_s], times]),
        warmup=1,
        oversubscribed=oversubscribed,
        **rest,
    )


@pytest.fixture
def add_completions():
    """add_completions(path, waits=..., sizes=...) adds samples in which senders wait if waits(size)."""

    def add(
        path,
        waits=lambda size: size >= 8192,
        *,
        sizes=tuple(4**k for k in range(12)),
        level="intra_socket",
        prompt_share=lambda size, waits: 1.0 if waits else 0.2,
        receivers=("prompt", "late"),
        oversubscribed=False,
        launches=3,
        launch=None,
    ):
        run = Run.open(path)
        first = len(run.launches())
        for number in range(first, first + launches):
            run.append_launch({"id": f"launch{number}"} | LAUNCH | (launch or {}))
            for size in sizes:
                delivery_s = 1e-6 + size / 1e10
                for receiver in receivers:
                    pause_s = max(5e-3, 3 * delivery_s) if receiver == "late" else 0.0
                    share = prompt_share(size, waits(size)) if receiver == "prompt" else float(waits(size))
                    received_s = pause_s + delivery_s
                    row = [max(share * received_s, 0.2 * delivery_s), received_s]
                    rows = np.array([[10 * time_s for time_s in reversed(row)], row, row])
                    run.append_samples(
                        [
                            Sample(
                                "completion",
                                "completion",
                                {"mpi": "mpich", "level": level, "size_bytes": size, "receiver": receiver},
                                f"launch{number}",
                                rows.max(axis=1),
                                warmup=1,
                                rank_times_s=rows,
                                oversubscribed=oversubscribed,
                            )
                        ]
                    )
        return path

    return add
