"""The balance of work: what is advised is known."""

from earlybird.data.work_balance import WorkBalance


def test_even_work_is_advised_only_where_its_saving_is_known():
    known = WorkBalance(1, 2.0, 1.0)
    assert known.remedy(3.0).startswith("distribute the work evenly: rank 1 computes for 2 s")
    bounded = WorkBalance(1, 2.0, 1.0, 0.1, least_saved_s=0.6, most_saved_s=1.0)
    assert bounded.remedy(3.0).startswith("distribute the work evenly: ")
    unknown = WorkBalance(1, 2.0, 1.0, 0.4)
    assert unknown.remedy(3.0).startswith(
        "give every rank a core and record again: rank 1 is outside the MPI"
    )
    assert "distribute" not in unknown.action() and "is not known" in unknown.sentence(3.0)
    assert WorkBalance(1, 1.0, 1.0).remedy(3.0) == ""
