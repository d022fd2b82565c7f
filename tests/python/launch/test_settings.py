"""Settings of the user that launches need otherwise are refused before anything is measured."""

from pathlib import Path

import pytest

from earlybird.data.collective_algorithms import DEFAULT, forcing, parse_method
from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.launch.local import MpiexecLauncher
from earlybird.launch.slurm import SrunLauncher
from earlybird.launch.variables import refuse_changed
from earlybird.machine.flavours import Flavour
from earlybird.measure.groups import Group
from earlybird.measure.session import refuse_conflicts_of

LAYOUT = parse_layout("1x1x1")


def launcher(family: str, **settings: str) -> MpiexecLauncher:
    mpi = Flavour(family, family, "1", Path("/opt/mpicc"), Path("/opt/mpiexec"), settings=settings)
    return MpiexecLauncher(mpi)


def test_what_the_start_of_ranks_needs_is_refused(monkeypatch):
    with pytest.raises(InputError, match=r"--env I_MPI_PIN=0 has no effect .* needs I_MPI_PIN=1"):
        launcher("intel", I_MPI_PIN="0").check(LAYOUT)
    launcher("intel", I_MPI_PIN="1", I_MPI_FABRICS="ofi").check(LAYOUT)
    launcher("mpich", I_MPI_PIN="0").check(LAYOUT)
    for family, variable in (
        ("intel", "I_MPI_PIN_DOMAIN"),
        ("mpich", "HYDRA_BINDING"),
        ("openmpi", "PRTE_MCA_hwloc_default_binding_policy"),
    ):
        with monkeypatch.context() as shell:
            shell.setenv(variable, "numa")
            with pytest.raises(InputError, match=f"{variable}=numa of the environment has no effect"):
                launcher(family).check(LAYOUT)


@pytest.mark.parametrize(
    ("family", "variable"),
    [
        ("intel", "I_MPI_PIN_PROCESSOR_LIST"),
        ("intel", "I_MPI_PIN_CELL"),
        ("mpich", "HYDRA_MAPPING"),
        ("openmpi", "OMPI_MCA_rmaps_base_mapping_policy"),
        ("openmpi", "OMPI_MCA_hwloc_base_binding_policy"),
        ("openmpi", "PRTE_MCA_rmaps_default_ranking_policy"),
    ],
)
def test_what_would_place_ranks_otherwise_is_refused(family, variable, monkeypatch):
    says = f"{variable}=1 .*would place ranks otherwise"
    with pytest.raises(InputError, match=f"--env {says}.*; omit it"):
        launcher(family, **{variable: "1"}).check(LAYOUT)
    monkeypatch.setenv(variable, "1")
    with pytest.raises(InputError, match=f"the variable {says}.*; unset {variable}"):
        launcher(family).check(LAYOUT)
    launcher("openmpi" if family == "intel" else "intel").check(LAYOUT)  # of another MPI


def test_variables_that_place_nothing_are_not_refused(monkeypatch):
    monkeypatch.setenv("I_MPI_PIN_INFO", "x")
    launcher("intel").check(LAYOUT)
    launcher("openmpi", OMPI_MCA_rmaps_base_oversubscribe="1").check(LAYOUT)


def test_what_the_ranks_of_slurm_need_is_refused_too(monkeypatch):
    monkeypatch.setattr("earlybird.launch.slurm.shutil.which", lambda name: name)
    monkeypatch.setattr(SrunLauncher, "_plugin", lambda self: "pmi2")
    with pytest.raises(InputError, match=r"--env I_MPI_PIN=1 has no effect .* needs I_MPI_PIN=0"):
        SrunLauncher(launcher("intel", I_MPI_PIN="1").mpi).check(LAYOUT)


def test_what_points_set_is_refused(monkeypatch):
    alone, other = launcher("mpich"), launcher("mpich", MPIR_CVAR_CH4_NUM_VCIS="1", ANY="1")

    def groups(**more):
        return [Group("msgrate", LAYOUT, ({"mpi": one.flavour},), **more) for one in (alone, other)]

    with pytest.raises(InputError, match="needs MPIR_CVAR_CH4_NUM_VCIS=4"):
        refuse_conflicts_of(groups(vcis=4), other)
    with pytest.raises(InputError, match="needs ANY=2"):
        refuse_conflicts_of(groups(environment={"ANY": "2"}), other)
    refuse_conflicts_of(groups(vcis=1), other)
    refuse_conflicts_of(groups(vcis=4), alone)
    monkeypatch.setenv("MPIR_CVAR_CH4_NUM_VCIS", "2")
    with pytest.raises(InputError, match="MPIR_CVAR_CH4_NUM_VCIS=2 of the environment has no effect"):
        refuse_conflicts_of(groups(vcis=4), alone)


@pytest.mark.parametrize(
    ("family", "variable", "method"),
    [
        ("openmpi", "OMPI_MCA_coll_tuned_bcast_algorithm", "binomial"),
        ("openmpi", "OMPI_MCA_coll_tuned_dynamic_rules_filename", "binomial"),
        ("mpich", "MPIR_CVAR_BCAST_INTRA_ALGORITHM", "binomial"),
        ("intel", "I_MPI_ADJUST_BCAST", "binomial"),
        ("intel", "I_MPI_ADJUST_BCAST", "pipeline:8192"),
    ],
)
def test_algorithms_that_a_user_selects_are_measured_alone(monkeypatch, family, variable, method):
    """Those that are forced would replace them, also where `default` is meant, or be replaced."""
    one = launcher(family)
    forced = {name: forcing(family, "bcast", parse_method(name), 4) for name in (DEFAULT, method)}
    settings = {name: value for name, value in forced.items() if value.variables()}
    point = ({"mpi": one.flavour},)
    group = Group("collective", LAYOUT, point, environment=forced[method].environment, settings=settings)
    refuse_conflicts_of([group], one)
    monkeypatch.setenv(variable, "1")
    refuse_conflicts_of([Group("collective", LAYOUT, point)], one)
    with pytest.raises(InputError, match=f"{variable}=1 .*unset {variable}"):
        refuse_conflicts_of([group], one)


@pytest.mark.parametrize(
    ("before", "now", "sentence"),
    [
        ("1", None, "UCX_TLS was '1' when run was measured and is not set now, .*; set UCX_TLS=1 again, or "),
        (
            None,
            "2",
            "UCX_TLS was not set when run was measured and is '2' now, .*; unset UCX_TLS, or measure",
        ),
        ("1", "2", "UCX_TLS was '1' when run was measured and is '2' now"),
    ],
)
def test_a_run_is_not_continued_with_other_variables(monkeypatch, before, now, sentence):
    def launch(value):
        return {"environment": {} if value is None else {"UCX_TLS": value}, "set_by_launcher": []}

    if now is not None:
        monkeypatch.setenv("UCX_TLS", now)
    refuse_changed(launcher("mpich").mpi, [launch(now), {"environment": {"UCX_TLS": "0"}}], "run")
    with pytest.raises(InputError, match=sentence):
        refuse_changed(launcher("mpich").mpi, [launch(now), launch(before)], "run")


def test_what_earlybird_and_batch_systems_set_may_change(monkeypatch):
    mpi = launcher("mpich", UCX_TLS="self").mpi
    recorded = {"UCX_TLS": "self", "FI_PROVIDER": "tcp", "SLURM_JOB_ID": "7"}
    refuse_changed(mpi, [{"environment": recorded, "set_by_launcher": ["FI_PROVIDER"]}], "run")
    monkeypatch.setenv("FI_PROVIDER", "shm")
    with pytest.raises(InputError, match="unset FI_PROVIDER, which earlybird sets itself"):
        refuse_changed(mpi, [{"environment": recorded, "set_by_launcher": ["FI_PROVIDER"]}], "run")


def test_variables_that_env_names_are_compared_where_they_are_recorded(monkeypatch):
    mpi = launcher("mpich").mpi._replace(compared=("A",))
    monkeypatch.setenv("A", "9")
    refuse_changed(mpi, [{"environment": {}, "set_by_launcher": []}], "run")
    for before in ("8", None):
        with pytest.raises(InputError, match=r"the variable A was .* is '9' now"):
            refuse_changed(mpi, [{"environment": {"A": before}, "set_by_launcher": []}], "run")
