"""Names of collective algorithms, what makes an MPI take one, and what is put into a job."""

import pytest

from earlybird.data.collective_algorithms import (
    DEFAULT,
    OPERATIONS,
    PERSISTENT,
    WITH_TOPOLOGY,
    Method,
    elements,
    family_of,
    forcing,
    mpi_algorithms,
    own_algorithms,
    parse_method,
    persistent_algorithms,
    tree_of,
    unmet_requirement,
)
from earlybird.data.collective_configuration import Region, configuration, setting
from earlybird.data.errors import InputError
from earlybird.data.mpi_algorithms import FAMILIES, MPICH_LABELS, Algorithm
from earlybird.models.trees import TREES


def test_a_method_is_named_with_its_segment_and_without_where_it_has_none():
    assert parse_method("pipeline:8192") == Method("pipeline", 8192)
    assert parse_method("pipeline:8192").text == "pipeline:8192"
    assert parse_method("own-binomial:0").text == "own-binomial"
    assert not parse_method(DEFAULT).is_forced and not parse_method("own-linear").is_forced
    with pytest.raises(InputError, match="has no valid segment"):
        parse_method("pipeline:8KiB")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_algorithm_differs_from_the_others_in_what_forces_it(family, operation):
    names = (*mpi_algorithms(family, operation), *persistent_algorithms(family, operation))
    cannot_be_chosen = (family, operation) == ("openmpi", "allgatherv")
    assert names or family == "simgrid" or operation in WITH_TOPOLOGY or cannot_be_chosen
    forced = [forcing(family, operation, Method(name), 8) for name in (*names, DEFAULT)]
    assert len({str(one) for one in forced}) == len(forced)
    for name in (*names, *own_algorithms(operation)):
        assert tree_of(family, operation, name) in (*TREES, None)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("operation", ["bcast", "reduce"])
def test_linear_pipeline_and_binomial_are_known_trees_everywhere(family, operation):
    assert tree_of(family, operation, "linear") == "linear"
    assert tree_of(family, operation, "pipeline") == "chain"
    assert tree_of(family, operation, "binomial").startswith("binomial-")
    assert tree_of(family, operation, "own-binomial") == "binomial-doubling"


def test_mpich_has_labels_for_its_numbers_in_the_environment():
    for operation in OPERATIONS:
        for name in (*mpi_algorithms("mpich", operation), *persistent_algorithms("mpich", operation)):
            output = setting("mpich", operation, name, 8)
            for variable, labels in MPICH_LABELS.items():
                pairs = dict(one.split("=") for one in output.split() if "=" in one)
                value = pairs.get(f"MPIR_CVAR_{variable}")
                assert value is None or value in labels
    assert "BCAST_INTRA_ALGORITHM=tree" in setting("mpich", "bcast", "linear", 8)
    assert "BCAST_TREE_KVAL=7" in setting("mpich", "bcast", "linear", 8)


def test_the_free_choice_is_set_again_where_calls_differ_in_one_launch():
    forced = forcing("mpich", "bcast", Method("binomial"), 4)
    free = forcing("mpich", "bcast", Method(DEFAULT), 4)
    assert set(free.call) <= set(forced.call)
    assert free.call["MPIR_CVAR_BCAST_DEVICE_COLLECTIVE"] == "1"
    openmpi = forcing("openmpi", "bcast", Method(DEFAULT), 4).communicator
    assert openmpi["coll_tuned_use_dynamic_rules"] == "0" and openmpi["coll_tuned_bcast_algorithm"] == "0"


def test_persistent_operations_take_the_algorithms_of_nonblocking_ones():
    forced = forcing("mpich", "alltoall", Method("persistent-bruck"), 4)
    assert dict(forced.call) == {"MPIR_CVAR_IALLTOALL_INTRA_ALGORITHM": "2"}
    assert forcing("openmpi", "bcast", Method("persistent-linear"), 4).variables() == {
        "call": {"coll_libnbc_ibcast_algorithm": "1"}
    }
    free = parse_method(PERSISTENT)
    assert free.is_persistent and not free.is_forced and not parse_method("ring").is_persistent
    for family in FAMILIES:
        assert forcing(family, "bcast", free, 4).variables() == {}
    assert tree_of("mpich", "bcast", "persistent-linear") == "linear"
    assert tree_of("mpich", "alltoallv", "own-linear") is None


def test_a_persistent_operation_is_another_call_of_the_program():
    text = setting("mpich", "allgatherv", "persistent-ring", 8)
    assert text.startswith("replace MPI_Allgatherv by MPI_Allgatherv_init once, MPI_Start and MPI_Wait")
    assert text.endswith("with MPIR_CVAR_IALLGATHERV_INTRA_ALGORITHM=sched_ring")
    assert "OMPI_MCA_coll_libnbc_iallreduce_algorithm=1" in setting(
        "openmpi", "allreduce", "persistent-ring", 8
    )
    with pytest.raises(InputError, match="another call of the program"):
        configuration("mpich", [Region("bcast", PERSISTENT, 8)])


def test_control_variables_are_of_the_communicator_or_of_calls():
    assert forcing("openmpi", "reduce", Method("pipeline", 4096), 4).variables() == {
        "communicator": {
            "coll_tuned_use_dynamic_rules": "1",
            "coll_tuned_priority": "90",
            "coll_tuned_reduce_algorithm": "3",
            "coll_tuned_reduce_algorithm_segmentsize": "4096",
        }
    }
    (kind,) = forcing("mpich", "bcast", Method("binomial"), 4).variables()
    assert kind == "call"
    assert forcing("intel", "bcast", Method("binomial"), 4).variables() == {}


@pytest.mark.parametrize(
    ("method", "ranks", "size", "needed"),
    [
        ("scatter-allgather", 6, 8, "a power of two of ranks"),
        ("scatter-allgather", 8, 8, None),
        ("binomial", 6, 8, None),
        ("own-linear", 6, 8, None),
    ],
)
def test_what_an_algorithm_needs_is_reported(method, ranks, size, needed):
    assert unmet_requirement("mpich", "bcast", Method(method), ranks, size) == needed


@pytest.mark.parametrize(
    ("method", "size", "needed"),
    [
        ("split-binary", 1, True),
        ("split-binary", 2, False),
        ("split-binary:4096", 8191, True),
        ("split-binary:4096", 8192, False),
    ],
)
def test_a_split_tree_needs_a_segment_in_each_half(method, size, needed):
    assert (unmet_requirement("openmpi", "bcast", parse_method(method), 5, size) is not None) == needed


def test_a_reduction_by_halves_needs_an_element_each():
    assert unmet_requirement("intel", "reduce", Method("rabenseifner"), 8, 56) is not None
    assert unmet_requirement("intel", "reduce", Method("rabenseifner"), 8, 64) is None
    assert elements(64) == ("double", 8) and elements(7) == ("byte", 7)


@pytest.mark.parametrize(
    ("version", "family"),
    [
        ("MPICH Version: 5.0.2", "mpich"),
        ("Open MPI v5.0.11, package", "openmpi"),
        ("Intel(R) MPI Library 2021.18", "intel"),
        ("none: drawn from a profile", None),
    ],
)
def test_the_family_is_reported_by_the_library_itself(version, family):
    assert family_of({"library_version": version}) == family


# Methods with their first and last sizes.
REGIONS = ("binomial", 0, 1023), ("linear", 1024, 4095)


def regions_of(operation, *regions):
    return [Region(operation, method, 8, *sizes) for method, *sizes in regions]


def configure(family, operation, *regions, **more):
    """Settings of one operation among 8 ranks."""
    return configuration(family, regions_of(operation, *regions), **more)


def rules_of(made):
    """The rules of a file for Open MPI for one operation, by from how many ranks on they apply."""
    (found,) = all_rules_of(made).values()
    return found


def all_rules_of(made):
    """The same for each operation, by its number."""
    numbers = iter([tuple(map(int, line.split("#")[0].split())) for line in made.text.splitlines()])
    (num_operations,) = next(numbers)
    found = {}
    for _ in range(num_operations):
        (operation,), (num_rank_counts,) = next(numbers), next(numbers)
        found[operation] = {}
        for _ in range(num_rank_counts):
            (ranks,), (num_sizes,) = next(numbers), next(numbers)
            found[operation][ranks] = [next(numbers) for _ in range(num_sizes)]
    assert not list(numbers)
    return found


def test_open_mpi_gets_a_rule_for_every_region():
    made = configure("openmpi", "bcast", *REGIONS, ("pipeline:8192", 4096))
    assert made.kind == "rules" and not made.left_out
    assert made.text.startswith("1  # operations\n7  # bcast\n")
    assert rules_of(made)[8] == [(0, 6, 0, 0), (1024, 1, 0, 0), (4096, 3, 0, 8192)]
    assert "dynamic_rules_filename=FILE" in made.use


def test_other_numbers_of_ranks_keep_the_default_of_open_mpi():
    """It applies the rules of the first number of ranks to fewer, too, and those of the last to more."""
    of_ranks = rules_of(configure("openmpi", "bcast", *REGIONS))
    assert list(of_ranks) == [1, 8, 9] and of_ranks[1] == of_ranks[9] == [(0, 0, 0, 0)]


def test_sizes_outside_the_regions_keep_the_default():
    rules = rules_of(configure("openmpi", "allgather", ("ring", 64, 1023)))[8]
    assert rules == [(0, 0, 0, 0), (8 * 64, 4, 0, 0), (8 * 1024, 0, 0, 0)]
    made = configure("openmpi", "bcast", ("binomial", 64, 1023), ("linear", 1024, 4095))
    assert rules_of(made)[8][0] == (0, 0, 0, 0)
    intel = configure("intel", "reduce", ("binomial", 8, 63), ("rabenseifner", 64, 99))
    assert 'I_MPI_ADJUST_REDUCE="0:0-7;2:8-63;5:64-99;0:100-2147483647"' in intel.text


def test_a_rule_of_chains_names_how_many():
    """None would be one chain, which is another algorithm."""
    made = configure("openmpi", "bcast", ("chain:4096", 0, 65535), (DEFAULT, 65536))
    assert rules_of(made)[8] == [(0, 2, 4, 4096), (65536, 0, 0, 0)]


def test_rules_of_blocks_count_all_blocks():
    made = configure("openmpi", "alltoall", ("bruck", 0, 1023), ("linear", 1024))
    assert rules_of(made)[8] == [(0, 3, 0, 0), (8 * 1024, 1, 0, 0)]


@pytest.mark.parametrize("operation", ["gather", "scatter"])
def test_ranks_that_count_different_sizes_get_one_algorithm(operation):
    """Open MPI's gather and scatter compare sizes of each rank's own arguments; these need not agree."""
    made = configure("openmpi", operation, *REGIONS, size_bytes=2048)
    assert [rule[0] for rule in rules_of(made)[8]] == [0] and "linear" in made.text
    assert [region.method for region in made.left_out] == ["binomial"] and operation in str(
        made.left_out.values()
    )
    # Where the default is best at some size, no other algorithm can serve all.
    regions = (DEFAULT, 8, 1023), ("linear", 1024, 4096)
    made = configure("openmpi", operation, *regions)
    assert made.idle and [region.method for region in made.left_out] == ["linear"]
    assert "linear" in configure("openmpi", operation, *regions, size_bytes=2048).text
    assert configure("openmpi", operation, *regions, size_bytes=8192).idle


def test_mpich_takes_the_algorithm_of_most_sizes_and_the_others_are_named():
    made = configure("mpich", "reduce", *REGIONS)
    assert made.kind == "shell" and [region.method for region in made.left_out] == ["linear"]
    assert 'export MPIR_CVAR_REDUCE_INTRA_ALGORITHM="binomial"' in made.text
    assert "# omitted" in made.text
    # Of the size asked for where there is one.
    large = configure("mpich", "reduce", *REGIONS, size_bytes=2048)
    assert [region.method for region in large.left_out] == ["binomial"]


def test_intel_takes_ranges_of_sizes_where_one_variable_distinguishes_them():
    made = configure("intel", "bcast", *REGIONS)
    assert 'export I_MPI_ADJUST_BCAST_NETWORK="3:0-1023;2:1024-2147483647"' in made.text
    presets = configure("intel", "reduce", ("binomial", 0, 1023), ("rabenseifner", 1024))
    assert 'export I_MPI_ADJUST_REDUCE="2:0-1023;5:1024-2147483647"' in presets.text
    mixed = configure("intel", "bcast", ("linear", 0, 1023), ("pipeline", 1024))
    assert [region.method for region in mixed.left_out] in (["pipeline"], ["linear"])


def test_no_mpi_can_use_our_own_algorithms():
    with pytest.raises(InputError, match="Earlybird's algorithm"):
        configure("mpich", "bcast", ("own-linear",))
    with pytest.raises(InputError, match="there is no algorithm 'magic'"):
        configure("mpich", "bcast", ("magic",))


def test_a_simulation_is_given_arguments_of_smpirun():
    assert setting("simgrid", "bcast", "linear", 8) == "--cfg=smpi/bcast:flattree"
    made = configure("simgrid", "bcast", *REGIONS)
    assert "--cfg=smpi/bcast:binomial_tree" in made.text.splitlines() and "smpirun" in made.use
    assert [region.method for region in made.left_out] == ["linear"]


def test_one_rules_file_has_every_operation_that_deviates():
    gather, allreduce = regions_of("gather", (DEFAULT,)), regions_of("allreduce", ("ring", 64))
    made = configuration("openmpi", [*regions_of("bcast", *REGIONS), *gather, *allreduce])
    rules = all_rules_of(made)
    assert {operation: list(of_ranks) for operation, of_ranks in rules.items()} == {
        7: [1, 8, 9],
        2: [1, 8, 9],
    }
    assert rules[7] == rules_of(configure("openmpi", "bcast", *REGIONS))
    assert rules[2][8] == [(0, 0, 0, 0), (64, 4, 0, 0)]
    assert made.changed == ("bcast", "allreduce") and made.operations == ("bcast", "gather", "allreduce")


@pytest.mark.parametrize(
    ("family", "bcast", "reduce"),
    [
        ("intel", "I_MPI_ADJUST_BCAST_NETWORK", "I_MPI_ADJUST_REDUCE_NETWORK"),
        ("mpich", "MPIR_CVAR_BCAST_INTRA_ALGORITHM", "MPIR_CVAR_REDUCE_INTRA_ALGORITHM"),
        ("simgrid", "--cfg=smpi/bcast:", "--cfg=smpi/reduce:"),
    ],
)
def test_one_file_has_the_variables_of_all_operations(family, bcast, reduce):
    """Those of each alone, and none twice."""
    regions = {"bcast": regions_of("bcast", *REGIONS), "reduce": regions_of("reduce", ("binomial",))}
    lines = configuration(family, [one for regions in regions.values() for one in regions]).text.splitlines()
    alone = {line for one in regions.values() for line in configuration(family, one).text.splitlines()}
    assert sorted(lines) == sorted(alone)
    assert bcast in "".join(lines) and reduce in "".join(lines)


def test_operations_that_need_different_values_of_a_variable_are_refused(monkeypatch):
    monkeypatch.setitem(FAMILIES["mpich"]["allreduce"], "ring", Algorithm(8, more={"BCAST_TREE_KVAL": "3"}))
    regions = [*regions_of("bcast", ("linear",)), *regions_of("allreduce", ("ring",))]
    with pytest.raises(InputError, match=r"bcast and allreduce need MPIR_CVAR_BCAST_TREE_KVAL to be 7 and 3"):
        configuration("mpich", regions)
