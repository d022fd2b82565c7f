"""OpenMetrics text is read by Prometheus's parsers: of OpenMetrics, and of the older text format."""

import json

import numpy as np
import pytest

from earlybird.data.run import Run, Sample

CONFIG = {"mpi": "mpich", "level": "intra_socket"}
ODD = 'a "quoted" \\ name\nof two lines'


@pytest.fixture
def run(tmp_path):
    run = Run.create(tmp_path / "run", machine={"host": ODD}, command=[], seed=1, earlybird="0.1.0")
    rng = np.random.default_rng(1)
    samples = [
        Sample(
            "pingpong", "half_round_trip", CONFIG | {"size_bytes": size}, launch, rng.uniform(1e-6, 2e-6, 9)
        )
        for size in (0, 8, 1024)
        for launch in ("a", "b", "c")
    ]
    rate = CONFIG | {"size_bytes": 8, "threads": 2, "window": 64}
    samples += [
        Sample("msgrate", "time_per_window", rate, "d", np.full(9, 1e-5), method=method, converged=False)
        for method in ("shared", "processes")
    ]
    run.append_samples(samples)
    return run


@pytest.fixture
def text(in_process, run, tmp_path):
    in_process("export", "run", "--to", "openmetrics", "-o", "earlybird.prom")
    return (tmp_path / "earlybird.prom").read_text()


def parsed(text: str, parser: str) -> dict:
    """By name, its family and its samples."""
    module = pytest.importorskip(f"prometheus_client.{parser}", reason="prometheus_client is not installed")
    return {family.name: family for family in module.text_string_to_metric_families(text)}


@pytest.mark.parametrize("parser", ["openmetrics.parser", "parser"])
def test_every_result_is_a_sample_of_gauges(in_process, run, text, parser):
    families = parsed(text, parser)
    assert {family.type for family in families.values()} == {"gauge"}
    points = json.loads(in_process("show", "run", "--json").stdout)["points"]
    assert len(points) == 5
    for name, key in {
        "earlybird_time_seconds": "time_s", "earlybird_time_low_seconds": "time_low_s",
        "earlybird_time_high_seconds": "time_high_s", "earlybird_launches": "launches",
        "earlybird_noisy_launches": "noisy", "earlybird_rate_messages_per_second": "rate_per_s",
        "earlybird_bandwidth_bytes_per_second": "bandwidth_bytes_per_s",
    }.items():  # fmt: skip
        having = [point for point in points if point.get(key) is not None]
        samples = families[name].samples
        assert [sample.value for sample in samples] == [point[key] for point in having], name
        for sample, point in zip(samples, having, strict=True):
            assert {label: str(point[label]) for label in sample.labels} == sample.labels
            assert {"kernel", "quantity", "mpi", "level", "size_bytes"} <= sample.labels.keys()
    methods = {
        sample.labels.get("method") for sample in families["earlybird_rate_messages_per_second"].samples
    }
    assert methods == {"shared", "processes"}


def test_units_are_in_the_names(text):
    for family in parsed(text, "openmetrics.parser").values():
        assert family.name.endswith(family.unit)
    assert text.endswith("\n# EOF\n")


@pytest.mark.parametrize("parser", ["openmetrics.parser", "parser"])
def test_labels_are_escaped(run, text, parser):
    (sample,) = parsed(text, parser)["earlybird_run_start_time_seconds"].samples
    assert sample.labels == {"run": run.id, "host": ODD, "earlybird": "0.1.0"}
    assert sample.value > 1.7e9 and sample.timestamp is None


def test_a_run_without_results_is_refused(in_process, refused, tmp_path):
    Run.create(tmp_path / "run", machine={}, command=[], seed=1)
    refused(in_process("export", "run", "--to", "openmetrics", "-o", "a.prom", check=False), "no results")
    refused(
        in_process("export", "run", "--to", "openmetrics", "--combined", "-o", "a", check=False), "--combined"
    )
