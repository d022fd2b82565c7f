"""The table of pipelines: a line per method, common values on the first line of a point, best method "
"first."""

import numpy as np
import pytest

from earlybird.cli.pipeline_table import pipeline_order, pipeline_table, pipeline_values
from earlybird.data.run import Sample

TIMES_S = {"single": 8e-6, "rma-fence": 16e-6, "many": 4e-6, "earlybird:512": 5e-6}


def samples(method, **more):
    config = {"mpi": "mpich", "level": "intra_socket", "size_bytes": 4000, "partitions": 4} | more
    config = {"gamma_s_per_byte": 1e-9} | config if "compute_s_per_byte" not in more else config
    return [
        Sample("pipeline", "time_to_solution", config, launch, np.full(8, TIMES_S[method]), method=method,
               rounds=np.arange(8))
        for launch in ("0", "1")
    ]  # fmt: skip


def rows(methods=tuple(TIMES_S), **more):
    bulk = samples("single", **more)
    result = [
        pipeline_values(samples(method, **more), bulk)
        | {"level": "intra_socket", "size_bytes": 4000, "time_s": TIMES_S[method], "launches": 2}
        for method in methods
    ]
    return sorted(result, key=pipeline_order)


def lines(*of_points):
    return pipeline_table([row for point in of_points for row in point], lambda row: "converged")


def test_single_comes_first_and_the_slowest_method_last():
    header, cells = lines(rows())
    method = header.index("method")
    assert [line[method] for line in cells] == ["single", "many", "earlybird:512", "rma-fence"]
    gain = header.index("gain")
    assert [line[gain] for line in cells] == ["", "2.00", "1.60", "0.50"]
    # Once per point: 4000 B in 8 us are 0.5 GB/s, times 1000 us/MB.
    beta = header.index("gamma*beta")
    assert [line[beta] for line in cells] == ["0.50", "", "", ""]
    assert "threads" not in header and "VCIs" not in header


def test_threads_and_contexts_have_columns_if_used():
    header, cells = lines(rows(("single", "many")), rows(("single", "many"), threads=2, vcis=4))
    threads, vcis = header.index("threads"), header.index("VCIs")
    assert [line[threads] for line in cells] == [1, "", 2, ""]
    assert [line[vcis] for line in cells] == ["", "", 4, ""]
    assert all(len(line) == len(header) for line in cells)


def test_samples_without_threads_have_one():
    assert {row["threads"] for row in rows()} == {1}


def test_a_noisy_computation_has_the_gamma_of_equation_9():
    """mu*(theta + (epsilon + delta)/2*(sqrt(theta) + 1) - 1) with theta = 4 partitions on one thread."""
    noise = {"compute_s_per_byte": 1e-9, "epsilon": 0.04, "delta": 0.0}
    row = rows(**noise)[0]
    assert row["gamma_s_per_byte"] == pytest.approx(3.06e-9) and row["compute_s_per_byte"] == 1e-9
    assert row["gain_theory"] == pytest.approx(4 / (4 - 3.06e-9 * 4000 / 8e-6))
    assert rows(**noise, threads=4)[0]["gamma_s_per_byte"] == pytest.approx(0.04e-9)
