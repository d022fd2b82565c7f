"""The verdict on forms of collectives: the true form wins."""

from dataclasses import replace

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.fit.collective_comparison import ALL_SIZES, MEAN, compare, verdict
from earlybird.fit.observations import read_runs
from tests.collective_runs import (
    forms_of,
    planted_s,
    rows_of,
    write_run,
)


def test_a_form_of_one_size_is_fitted_to_all_mappings(tmp_path):
    path = write_run(
        tmp_path / "run", planted_s, sizes=(1,), map_by=("node", "core"), shape="4x1x2", launches=1
    )
    others = forms_of(path)["binomial"].extra["alternatives"]
    assert {row["fitted_to"] for row in others if "fitted_to" in row} == {"all mappings"}


def test_a_true_form_of_the_report_wins(tmp_path):
    """ln T = a + k*P, the report's form 2, at one size: no logarithm of P describes it."""

    def exponential_s(operation, method, node, socket, size):
        return 1e-6 * np.exp(1.2472 + 0.3 * len(node))

    form = forms_of(write_run(tmp_path / "run", exponential_s, sizes=(1,)))["binomial"]
    ours, theirs = rows_of(form, "1 B by node")
    assert theirs["form"] == "insaghi-2" and theirs["aicc"] + 10 < ours["aicc"]
    assert "trust insaghi-2" in verdict("bcast", "binomial", [ours, theirs])


def test_the_size_grid_of_the_report_wins_if_it_is_true(tmp_path):
    def grid_s(operation, method, node, socket, size):
        return 1e-6 * 2 ** (0.644 * np.log2(len(node)) + 8.131e-6 * size)

    path = write_run(
        tmp_path / "run", grid_s, sizes=(1, 1 << 10, 1 << 16, 1 << 18, 1 << 19, 1 << 20, 3 << 19)
    )
    ours, theirs = rows_of(forms_of(path)["binomial"], ALL_SIZES)
    assert theirs["form"] == "insaghi-3" and theirs["aicc"] + 10 < ours["aicc"]


def test_a_form_is_called_good_only_where_it_predicts():
    ours = {"points": ALL_SIZES, "form": "alpha-beta", "aicc": 1.0, "held_out_error": 0.7}
    theirs = ours | {"form": "insaghi-3", "aicc": 50.0, "held_out_error": 0.9}
    assert "neither is good" in verdict("bcast", "linear", [ours, theirs])
    assert "neither" not in verdict("bcast", "linear", [ours | {"held_out_error": 0.1}, theirs])


def test_the_mean_over_ranks_is_compared_where_asked(tmp_path):
    collectives = read_runs([write_run(tmp_path / "run", planted_s)]).collectives
    # The drawn ranks are done after 0.7 of the time of the last one.
    assert (collectives.table.mean_s < collectives.table.time_s).all()
    ours, theirs, *_ = compare(collectives, "bcast", "binomial", "openmpi", MEAN)
    assert ours["times"] == theirs["times"] == MEAN


def test_a_mean_over_ranks_needs_the_times_of_all_ranks(tmp_path):
    collectives = read_runs([write_run(tmp_path / "run", planted_s, launches=1)]).collectives
    lost = replace(collectives, table=collectives.table.assign(mean_s=np.nan))
    with pytest.raises(InputError, match="bcast binomial: no sample has the times of every rank"):
        compare(lost, "bcast", "binomial", "openmpi", MEAN)
