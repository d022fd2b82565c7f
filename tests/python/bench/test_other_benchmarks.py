"""`bench other-benchmarks` refuses what it cannot compare; the comparison itself takes minutes."""

import numpy as np
import pytest

from bench import other_benchmarks
from earlybird.data.errors import InputError
from earlybird.data.run import Sample
from earlybird.interop.osu_tables import osu_tables


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--cases", "latency,osu_put"], "osu_put"),
        (["--launches", "4"], "at least 5"),
        (["--osu", "no/such/folder", "--cases", "latency"], "no osu_latency"),
    ],
)
def test_bad_arguments_are_refused(arguments, named):
    with pytest.raises(InputError, match=named):
        other_benchmarks.main(arguments)


def test_every_program_of_osu_prints_the_table_that_our_points_become():
    """So that both are matched after the import."""
    for case in other_benchmarks._cases():
        if case.tool == "osu":
            config = case.config | {"mpi": "mpich", "size_bytes": case.sizes_bytes[0]}
            method = "".join(case.methods)
            sample = Sample(case.kernel, "completion", config, "0", np.ones(1), method=method)
            (table,) = osu_tables([sample])
            assert table.program == case.program or (table.program, case.program) == ("osu_mbw_mr", "osu_bw")
