"""Run folders of collectives with known times, in the format of `measure collective`."""

import itertools

import numpy as np

from earlybird.data.layout import parse_layout
from earlybird.data.run import Run, Sample
from earlybird.fit.observations import read_runs
from earlybird.fit.profile import fit_profile
from earlybird.models.collective import (
    CollectiveCosts,
    collective_time_s,
    count_hops,
    make_calls,
    term_names,
)

MACHINE = {"cpu_model": "Test CPU", "cores": 8, "sockets": 1, "host": "testhost"}
# Closer where the time of a byte begins to matter; every size more is one more fit without it.
SIZES = tuple(4**k for k in (0, 2, 4, 6, 7, 8, 9))

# Seconds per hop and per byte: same socket, across sockets, between nodes.
ALPHA_S = (1e-6, 2e-6, 2e-5)
BETA_S_PER_BYTE = (1e-10, 2e-10, 8e-9)
# The additional cost of the first message of `linear`.
FIRST_ALPHA_S, FIRST_BETA_S_PER_BYTE = (0, 0, 1e-5), (0, 0, 1e-9)
STRUCTURES = {"linear": "linear", "pipeline": "chain", "binomial": "binomial-doubling"}


def planted_s(operation, method, node, socket, size_bytes, gamma_r_s_per_byte=0.0):
    """Seconds by the physical forms with the coefficients above, for `write_run`."""
    algorithm, _, segment = method.removeprefix("own-").partition(":")
    structure = STRUCTURES[algorithm]
    if operation == "reduce" and structure == "binomial-doubling":
        structure = "binomial-halving"
    calls = make_calls([count_hops(structure, node, socket)], [size_bytes], [int(segment or 0)])
    first = len(term_names(structure)) - 1
    costs = CollectiveCosts(
        np.array([0]),
        np.array([[ALPHA_S, *[FIRST_ALPHA_S] * first]], dtype=float),
        np.array([[BETA_S_PER_BYTE, *[FIRST_BETA_S_PER_BYTE] * first]], dtype=float),
        gamma_r_s_per_byte if operation == "reduce" else 0.0,
    )
    return float(collective_time_s(calls, costs)[0])


def write_run(
    path,
    time_s,
    *,
    methods=("binomial",),
    operations=("bcast",),
    ranks=range(2, 9),
    sizes=SIZES,
    map_by=("node",),
    shape="8x1x1",
    mpi="openmpi",
    launches=3,
    noise=0.02,
    placement=True,
    library_version="",
    reduce_local_s=None,
    seed=1,
    oversubscribed=lambda num_ranks: False,
    variants=({},),
    **flags,
):
    """Samples of `time_s(operation, method, node, socket, size_bytes)`; a launch for each count and
    mapping. Each point is measured with the configuration of each of `variants`, such as a skew."""
    run = Run.create(path, machine=MACHINE, command=["earlybird", "measure"], seed=seed)
    random = np.random.default_rng(seed)
    number = 0
    for mapping in map_by:
        whole = parse_layout(shape, mapping)
        for num_ranks in ranks:
            node, socket = whole.node[:num_ranks], whole.socket[:num_ranks]
            for _ in range(launches):
                launch = f"launch{number}"
                number += 1
                run.append_launch(_launch(launch, mpi, library_version, node, socket, placement))
                pace = random.lognormal(0, noise / 2)
                config = {
                    "mpi": mpi,
                    "ranks": num_ranks,
                    "layout": whole.text.replace(" ", "_"),
                    "map_by": mapping,
                    "root": 0,
                }
                samples = []
                for operation in operations:
                    for size, variant in itertools.product(sizes, variants):
                        point = config | {"operation": operation, "size_bytes": size} | variant
                        for method in methods:
                            expected_s = time_s(operation, method, node, socket, size) * pace
                            rows = expected_s * random.lognormal(0, noise, (6, num_ranks))
                            rows[:, -1] = rows.max(axis=1)
                            rows[:, :-1] *= 0.7
                            rows[0] *= 10
                            samples.append(
                                Sample(
                                    "collective",
                                    "completion",
                                    point,
                                    launch,
                                    rows.max(axis=1),
                                    warmup=1,
                                    method=method,
                                    rank_times_s=rows,
                                    rounds=np.arange(6),
                                    oversubscribed=oversubscribed(num_ranks),
                                    **flags,
                                )
                            )
                if reduce_local_s is not None:
                    samples += [
                        Sample(
                            "collective",
                            "reduce_local",
                            config | {"operation": "reduce_local", "size_bytes": size},
                            launch,
                            np.full(5, reduce_local_s(size)),
                        )
                        for size in sizes
                    ]
                run.append_samples(samples)
    return path


def _launch(name, mpi, library_version, node, socket, placement):
    entries = [
        {"rank": r, "host": f"node{a}", "node": int(a), "sockets": [int(b)], "socket": int(b)}
        for r, (a, b) in enumerate(zip(node, socket, strict=True))
    ]
    version = {"library_version": library_version} if library_version else {}
    return version | {
        "id": name,
        "kernel": "collective",
        "flavour": mpi,
        "version": "1.0",
        "launcher": "local",
        "transport": "inter-node",
        "placement": entries if placement else [],
        "environment": {"MPIR_CVAR_DEVICE_COLLECTIVES": "none"} if name.endswith("1") else {},
    }


def forms_of(*paths):
    """The forms fitted to runs, by algorithm."""
    return {form.algorithm: form for form in fit_profile(read_runs(paths)).collectives}


def rows_of(form, points):
    """The rows of the comparison on `points`: our form fitted to these points only, and that of the
    report."""
    rows = [row for row in form.extra["alternatives"] if row["points"] == points]
    ours, theirs = (row for row in rows if "fitted_to" not in row)
    assert ours["form"] == "alpha-beta" and theirs["form"].startswith("insaghi-")
    return ours, theirs
