"""The algorithm of a collective operation that the environment of a run selects."""

import pytest

from earlybird.data.algorithm_settings import algorithm_settings, selected_method, selecting_variable
from earlybird.data.collective_configuration import setting
from earlybird.data.errors import InputError
from earlybird.data.mpi_algorithms import FAMILIES

REAL = ("mpich", "openmpi", "intel")


@pytest.mark.parametrize("family", REAL)
def test_every_algorithm_is_known_again_by_its_settings(family):
    for operation, algorithms in FAMILIES[family].items():
        for name in algorithms:
            try:
                text = setting(family, operation, name, 4)
            except InputError:
                continue
            settings = dict(one.split("=", 1) for one in text.split())
            assert selected_method(family, operation, settings, algorithms, 4) == name
            assert [one for one in FAMILIES[family] if algorithm_settings(settings, one)] == [operation]


@pytest.mark.parametrize("family", REAL)
def test_the_variable_alone_selects_the_algorithm(family):
    text = setting(family, "allreduce", "recursive-doubling", 4)
    variable = selecting_variable(family, "allreduce")
    (value,) = (one.partition("=")[2] for one in text.split() if one.startswith(f"{variable}="))
    known = FAMILIES[family]["allreduce"]
    assert selected_method(family, "allreduce", {variable: value}, known, 4) == "recursive-doubling"


def test_a_free_choice_selects_nothing_and_a_file_of_rules_selects_for_all():
    free = {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "auto", "MPIR_CVAR_REDUCE_SCATTER_INTRA_ALGORITHM": "ring"}
    assert algorithm_settings(free, "allreduce") == algorithm_settings(free, "reduce") == {}
    rules = {"OMPI_MCA_coll_tuned_dynamic_rules_filename": "rules"}
    assert algorithm_settings(rules, "bcast") == rules
    assert selected_method("openmpi", "bcast", rules, FAMILIES["openmpi"]["bcast"], 4) is None
    assert selected_method(None, "bcast", rules, ["linear"], 4) is None


@pytest.mark.parametrize(
    "setting",
    [
        "OMPI_MCA_coll_tuned_bcast_algorithm=0",
        "OMPI_MCA_coll_tuned_bcast_algorithm=ignore",
        "OMPI_MCA_coll_ucc_enable=0",
        "I_MPI_ADJUST_BCAST=-1",
        "MPIR_CVAR_BCAST_COMPOSITION=0",
        "MPIR_CVAR_DEVICE_COLLECTIVES=percoll",
        "MPIR_CVAR_BCAST_DEVICE_COLLECTIVE=1",
        # Of other operations.
        "MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE=1",
        "MPIR_CVAR_SCATTER_INTER_SHORT_MSG_SIZE=1",
        "MPIR_CVAR_MAX_SMP_ALLREDUCE_MSG_SIZE=1",
        "OMPI_MCA_coll_tuned_allreduce_algorithm=1",
    ],
)
def test_what_is_the_default_selects_nothing(setting):
    assert algorithm_settings(dict([setting.split("=", 1)]), "bcast") == {}


@pytest.mark.parametrize(
    "setting",
    [
        "MPIR_CVAR_BCAST_COMPOSITION=3",
        "MPIR_CVAR_BCAST_SHORT_MSG_SIZE=1024",
        "MPIR_CVAR_BCAST_MIN_PROCS=2",
        "MPIR_CVAR_BCAST_DEVICE_COLLECTIVE=0",
        "MPIR_CVAR_DEVICE_COLLECTIVES=none",
        "MPIR_CVAR_ENABLE_SMP_COLLECTIVES=0",
        "OMPI_MCA_coll=^tuned",
        "OMPI_MCA_coll_ucc_enable=1",
        "OMPI_MCA_coll_hcoll_enable=1",
        "OMPI_MCA_coll_han_priority=0",
        "I_MPI_COLL_INTRANODE=pt2pt",
        "I_MPI_ADJUST_BCAST=1",
    ],
)
def test_what_changes_the_choice_of_algorithms_selects(setting):
    settings = dict([setting.split("=", 1)])
    assert algorithm_settings(settings, "bcast") == settings


def test_limits_of_reduce_scatter_are_not_of_reduce():
    limits = {"MPIR_CVAR_REDUCE_SCATTER_COMMUTATIVE_LONG_MSG_SIZE": "1"}
    assert algorithm_settings(limits, "reduce") == {}
    assert algorithm_settings({"MPIR_CVAR_REDUCE_SHORT_MSG_SIZE": "1"}, "reduce")
