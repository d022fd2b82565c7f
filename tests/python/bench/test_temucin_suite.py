"""What the bench reads from the programs of Temucin et al., and what it makes of our samples."""

import pytest

from bench import temucin_suite
from bench.temucin_suite import AFTER, OVERHEAD, PERCEIVED, ours_of, printed_values, verdict_of
from earlybird.data.run import sample_from_json


def test_without_programs_one_sentence_says_what_to_build(capsys):
    assert temucin_suite.main() == 0
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") <= 1
    assert temucin_suite.SUITE in captured.err and "--programs mpich=DIR" in captured.err


def test_a_folder_without_their_programs_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        temucin_suite.main(["--programs", f"mpich={tmp_path}"])
    assert "perceived_bandwidth, overhead, availability" in capsys.readouterr().err


def test_lines_of_a_size_and_a_value_are_read_in_our_units():
    output = (
        "# Threads  :  2 #\n\nMessage Size (B)    Value\n1048576          119.5\n2097152          -19.25\n"
    )
    assert printed_values(output, PERCEIVED)[1048576] == pytest.approx(119.5e6)
    assert printed_values(output, OVERHEAD) == {1048576: 119.5, 2097152: -19.25}
    assert printed_values(output, AFTER)[2097152] == pytest.approx(1.1925)
    assert printed_values("1048576     nan\n", OVERHEAD) == {}


def sample(method, ready_s, returned_s, arrived_s, joined_s):
    rows = {"ready_s": ready_s, "returned_s": returned_s, "arrived_s": arrived_s, "compute_s": [0.0, 0.0]}
    moments = {key: [row, row] for key, row in rows.items()}
    columns = {"joined_s": [joined_s] * 2, "completed_s": [max(arrived_s)] * 2}
    return sample_from_json({
        "kernel": "partitioned", "quantity": "in_flight", "method": method, "launch": "0",
        "config": {"mpi": "mpich", "size_bytes": 80, "partitions": 2, "threads": 2},
        "times_s": [1.0, 1.0], "rounds": [0, 1], **moments, **columns,
    })  # fmt: skip


def test_ours_are_given_as_defined_and_from_the_return_of_pready():
    samples = [
        sample("single", [4.0, 4.0], [4.5, 4.5], [8.0, 8.0], 4.0),
        sample("partitioned", [1.0, 3.0], [1.5, 4.0], [2.0, 8.0], 4.0),
    ]
    found = {metric: values for metric, *values in ours_of(samples, "partitioned", 80)}
    assert found[PERCEIVED] == pytest.approx([80 / 5, 80 / 4])
    assert found[OVERHEAD] == pytest.approx([6 / 4, 4.5 / 4])
    assert found[AFTER] == pytest.approx([1, 1])


def test_a_point_differs_if_its_whole_interval_does_and_is_not_compared_if_the_calls_matter():
    assert verdict_of(0.96, 1.04, calls=0.01) == "agrees"
    assert verdict_of(0.90, 0.96, calls=0.01) == "unclear"
    assert verdict_of(1.06, 1.20, calls=0.01) == verdict_of(0.80, 0.94, calls=0.0) == "differs"
    assert verdict_of(1.06, 1.20, calls=0.15) == "not compared: calls take 15 %"
