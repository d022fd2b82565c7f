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
        config |= {"competitors": n, "repeats": 10}
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
