"""What enters a fit: one context, validated data, no oversubscribed point where another exists."""

import numpy as np
import pytest

from earlybird.data.errors import InputError, WorkError
from earlybird.data.profile import Profile
from earlybird.data.run import Run, Sample
from earlybird.fit.observations import level_times, pingpong_times, read_runs
from earlybird.fit.profile import fit_profile


def test_the_warm_up_does_not_count(make_run):
    (level,) = level_times(read_runs([make_run("run")]).table)
    assert level.median_s()[0, 0] == pytest.approx(2e-6 + 1024 / 1e10, rel=1e-9)


def test_launches_of_several_runs_are_kept_apart(make_run):
    paths = [make_run("one", launches=2), make_run("two", launches=3)]
    observations = read_runs(paths)
    (level,) = level_times(observations.table)
    assert len(level.time_s) == 5
    assert [set(run) for run in observations.runs] == [{"id", "sha256"}] * 2


@pytest.mark.parametrize(
    ("key", "value"), [("flavour", "openmpi"), ("version", "4.0"), ("transport", "tcp"), ("launcher", "srun")]
)
def test_mixed_launches_are_refused_by_key_and_values(make_run, key, value):
    paths = [make_run("one"), make_run("two", launch={key: value})]
    with pytest.raises(InputError) as error:
        read_runs(paths)
    assert key in str(error.value) and repr(value) in str(error.value)


def test_levels_may_differ_in_transport(make_run):
    path = make_run("run", launches=1)
    make_run("run", launches=1, level="inter_node", launch={"transport": "tcp"})
    assert read_runs([path]).context["transport"] == {"intra_socket": "shm", "inter_node": "tcp"}


@pytest.mark.parametrize(("key", "value"), [("cpu_model", "Other CPU"), ("cores", 2)])
def test_mixed_machines_are_refused_by_key_and_values(make_run, key, value):
    paths = [make_run("one"), make_run("two", machine={key: value})]
    with pytest.raises(InputError) as error:
        read_runs(paths)
    assert key in str(error.value) and repr(value) in str(error.value)


def test_wrong_data_is_refused(make_run):
    with pytest.raises(WorkError, match="wrong data"):
        read_runs([make_run("run", validated=False)])


@pytest.mark.parametrize("what", [{"launches": 0}, {"kernel": "exchange"}])
def test_a_run_without_calibration_says_what_to_measure(make_run, what):
    with pytest.raises(InputError, match="earlybird measure pingpong contention completion"):
        read_runs([make_run("run", **what)])


def test_pingpongs_that_reuse_buffers_count_only_alone(make_run):
    reusing = make_run("reusing", kernel="pingpong", buffers="reuse")
    alone = read_runs([reusing])
    assert len(alone.table)
    assert "same buffer again" in alone.warnings[-1]
    varying = make_run("varying", kernel="pingpong", buffers="vary")
    both = read_runs([reusing, varying])
    assert len(both.table) == len(read_runs([varying]).table)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        (
            {"buffers": "off-cache", "off_cache": "32,64"},
            "measured with buffers off-cache and off_cache 32,64:",
        ),
        ({"buffers": "other"}, "measured with buffers other:"),
        ({"buffers": "vary", "thread_level": "multiple"}, "measured with thread_level multiple:"),
    ],
)
def test_pingpongs_with_other_buffers_or_parameters_are_named(make_run, parameters, says):
    path = make_run("run", launches=0)
    run = Run.open(path)
    run.append_launch({"id": "launch0"})
    configs = [_OF_LEVEL | {"size_bytes": size_bytes} | parameters for size_bytes in (8, 1024)]
    run.append_samples([Sample("pingpong", "half_round_trip", one, "launch0", np.ones(2)) for one in configs])
    assert any(says in warning for warning in read_runs([path]).warnings)


def test_pingpongs_of_measure_have_no_warning(make_run):
    assert not read_runs([make_run("varying", kernel="pingpong", buffers="vary")]).warnings


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="not a run folder"):
        read_runs([tmp_path])


_OF_LEVEL = {"level": "intra_socket", "size_bytes": 8}
_OF_RANKS = {"operation": "bcast", "map_by": "core", "layout": "1x1x4", "size_bytes": 8, "ranks": 4}
_SAMPLES = {
    "contention": ("time_per_repeat", _OF_LEVEL | {"competitors": 2}),
    "pingpong": ("half_round_trip", _OF_LEVEL),
    "pipeline": ("time_to_solution", _OF_LEVEL | {"partitions": 4, "gamma_s_per_byte": 0.0}),
    "collective": ("completion", _OF_RANKS),
}


@pytest.mark.parametrize(
    ("kernel", "key", "value", "says"),
    [
        ("contention", "competitors", "x", "config.competitors is 'x'; give a whole number"),
        (
            "contention",
            "size_bytes",
            None,
            "config has no 'size_bytes'; give it",
        ),
        ("pingpong", "size_bytes", "", "config.size_bytes is ''; give a whole number"),
        (
            "pipeline",
            "threads",
            "many",
            "config.threads is 'many'; give a whole number",
        ),
        ("pipeline", "level", None, "no level in its config.*; measure again"),
        ("collective", "ranks", "four", "config.ranks is 'four'; give a whole number"),
        (
            "collective",
            "layout",
            None,
            "no layout in its config.*; measure again",
        ),
    ],
)
def test_a_config_that_is_not_usable_is_refused_by_its_key(make_run, kernel, key, value, says):
    """None: without the key."""
    path = make_run("run", launches=0)
    quantity, config = _SAMPLES[kernel]
    config = {name: one for name, one in (config | {key: value}).items() if one is not None}
    run = Run.open(path)
    run.append_launch({"id": "launch0"})
    run.append_samples([Sample(kernel, quantity, config, "launch0", np.ones(2), method="single")])
    with pytest.raises(InputError, match=says):
        read_runs([path])


def test_contention_is_not_mixed_with_ping_pongs(make_run):
    path = make_run("run", ns=(1, 2), launches=2)
    make_run("run", lambda n, size: 1.0, kernel="pingpong", ns=(1,), launches=2)
    table = read_runs([path]).table
    (level,) = level_times(table)
    assert level.n.tolist() == [1, 2] and level.median_s().max() < 1e-3
    assert pingpong_times(table)[0].median_s().min() == 1.0


def test_a_ping_pong_gives_the_single_pair_missing_from_contention(make_run):
    path = make_run("run", ns=(2, 4), launches=2)
    make_run("run", lambda n, size: 1.0, kernel="pingpong", ns=(1,), launches=2)
    (level,) = level_times(read_runs([path]).table)
    assert level.n.tolist() == [1, 2, 4] and level.median_s()[0].min() == 1.0


def test_oversubscribed_points_give_method_to_others(make_run):
    path = make_run("run", ns=(4,), launches=2)
    make_run("run", lambda n, size: 1.0, ns=(4, 8), launches=2, oversubscribed=lambda n: True)
    (level,) = level_times(read_runs([path]).table)
    assert level.n.tolist() == [4, 8] and level.oversubscribed.tolist() == [False, True]
    assert level.median_s()[0].max() < 1e-3


VARIABLES = {
    "btl_self_eager_limit": 1024,
    "btl_sm_eager_limit": 4096,
    "btl_tcp_eager_limit": 65536,
    "MPIR_CVAR_CH4_IPC_CMA_P2P_THRESHOLD": 8192,
    "MPIR_CVAR_CH4_IPC_XPMEM_P2P_THRESHOLD": -1,
    "MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE": 131072,
    "MPIR_CVAR_BCAST_IPC_READ_MSG_SIZE_THRESHOLD": 256,
}


@pytest.mark.parametrize(
    ("level", "limits"),
    [
        ("intra_socket", {"btl_sm_eager_limit": 4096, "MPIR_CVAR_CH4_IPC_CMA_P2P_THRESHOLD": 8192}),
        ("inter_node", {"btl_tcp_eager_limit": 65536}),
    ],
)
def test_thresholds_are_those_of_messages_of_the_level(make_run, level, limits):
    path = make_run("run", level=level, launch={"control_variables": VARIABLES})
    assert read_runs([path]).thresholds_bytes == {level: limits}


def test_runs_under_other_control_variables_are_refused(make_run):
    other = VARIABLES | {"btl_sm_eager_limit": 16384}
    paths = [make_run(str(k), launch={"control_variables": v}) for k, v in enumerate((VARIABLES, other))]
    with pytest.raises(InputError, match="btl_sm_eager_limit is 4096 in one part and 16384 in another"):
        read_runs(paths)


def test_variables_by_which_slurm_chooses_a_network_are_an_environment(make_run):
    paths = [
        make_run(
            name, launch={"environment": {"SLURM_NETWORK": name, "SLURM_JOB_ID": name}, "set_by_launcher": []}
        )
        for name in ("job_vni", "single_node_vni")
    ]
    with pytest.raises(InputError, match="the environment variable SLURM_NETWORK is 'job_vni' in one part"):
        read_runs(paths)


def test_runs_under_another_environment_are_refused_by_variable_and_values(make_run):
    paths = [
        make_run(name, launch={"environment": env}) for name, env in (("a", {}), ("b", {"UCX_TLS": "tcp"}))
    ]
    with pytest.raises(InputError, match="UCX_TLS is 'tcp' in one part and not set in another"):
        read_runs(paths)


@pytest.mark.parametrize(
    "launch",
    [
        {"environment": {"SLURM_JOB_ID": "7", "PMI_RANK": "0", "OMPI_ALLOW_RUN_AS_ROOT": "1"}},
        {"environment": {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1", "I_MPI_PIN_DOMAIN": "core"}},
        {"environment": {"FI_PROVIDER": "shm"}, "set_by_launcher": ["FI_PROVIDER"]},
    ],
)
def test_what_the_launcher_or_the_queue_sets_does_not_keep_runs_apart(make_run, launch):
    paths = [make_run("a", launch={"environment": {}}), make_run("b", launch=launch)]
    assert len(read_runs(paths).runs) == 2


def test_a_variable_of_the_user_counts_where_the_record_says_who_set_what(make_run):
    launches = [{"environment": {"I_MPI_PIN": value}, "set_by_launcher": []} for value in ("0", "1")]
    paths = [make_run(str(k), launch=launch) for k, launch in enumerate(launches)]
    with pytest.raises(InputError, match="I_MPI_PIN is '0' in one part and '1' in another"):
        read_runs(paths)


@pytest.mark.parametrize(("old", "new"), [("shared memory", "intra-node"), ("network", "inter-node")])
def test_transports_of_older_runs_are_read_as_todays(make_run, old, new):
    paths = [make_run(name, launch={"transport": name}) for name in (old, new, "unknown")]
    assert read_runs(paths).context["transport"] == new


def test_the_context_tells_where_ranks_were_placed(make_run):
    path = make_run("run", launches=1, launch={"layout": "1x1x2", "binding": "core"})
    make_run("run", launches=1, launch={"layout": "1x1x4", "binding": "none"})
    placement = read_runs([path]).context["placement"]
    assert placement == {"intra_socket": ["1x1x2 bound to core", "1x1x4 bound to none"]}


VIRTUAL = {"launcher": "cluster", "network": "virtual links of 200 Mbit/s each way"}


@pytest.mark.parametrize(
    ("key", "value", "usual"),
    [
        ("threads_per_rank", 4, 1),
        ("network", VIRTUAL["network"], "not a virtual cluster's"),
        ("srun", "--network=job_vni", "without arguments"),
    ],
)
def test_a_launch_that_does_not_say_counts_as_usual(make_run, key, value, usual):
    unusual = make_run("unusual", launch={key: value})
    assert read_runs([unusual]).context[key] == value
    plain = [make_run("old"), make_run("new", launch={"threads_per_rank": 1})]
    assert key not in read_runs(plain).context
    for paths in ([unusual, plain[0]], [plain[0], unusual]):
        with pytest.raises(InputError) as error:
            read_runs(paths)
        assert all(text in str(error.value) for text in (key, repr(value), repr(usual)))


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("threads_per_rank", (2, 4)),
        ("network", (VIRTUAL["network"], "virtual links of 1000 Mbit/s each way")),
    ],
)
def test_threads_and_rates_are_not_mixed(make_run, key, values):
    paths = [make_run(str(k), launch={key: value}) for k, value in enumerate(values)]
    with pytest.raises(InputError, match=f"{key} is .*{values[0]}.* in one part and .*{values[1]}"):
        read_runs(paths)


LINK = {"expected_bytes_per_s": 24e6, "slowest_node_bytes_per_s": {"1": 23.5e6}, "incast_bytes_per_s": 26e6}


def test_a_link_check_that_deviates_gives_a_warning_with_its_values_only(make_run):
    right = {"link": LINK | {"matches": True}, "link_at_start": LINK | {"matches": True}}
    path = make_run("run", level="inter_node", launches=3, launch=VIRTUAL | right)
    assert read_runs([path]).warnings == ()
    make_run(
        "run", level="inter_node", launches=2, launch=VIRTUAL | right | {"link": LINK | {"matches": False}}
    )
    (warning,) = [w for w in fit_profile(read_runs([path])).extra["warnings"] if "virtual links" in w]
    for text in (
        "requested 24 MB/s",
        "measured 26 MB/s with all nodes sending to one",
        "2 of 5 launches",
        "not the samples",
    ):
        assert text in warning
    assert "23.5 MB/s" not in warning  # the requested rate
    assert "; the longer check at the start of the cluster did not" in warning


def test_every_link_check_that_deviates_gives_one_warning(make_run):
    for incast in (26e6, 27e6):
        link = LINK | {"matches": False, "incast_bytes_per_s": incast}
        path = make_run("run", level="inter_node", launches=2, launch=VIRTUAL | {"link": link})
    first, second = read_runs([path]).warnings
    assert "measured 26 MB/s" in first and "measured 27 MB/s" in second
    assert "2 of 4 launches" in first and "start of the cluster" not in first


def test_a_link_check_without_values_gives_a_warning_too(make_run):
    path = make_run("run", level="inter_node", launch=VIRTUAL | {"link": {"matches": False}})
    (warning,) = read_runs([path]).warnings
    assert "deviated; it is in the record of 5 of 5 launches" in warning


def test_links_do_not_matter_to_messages_inside_a_node(make_run):
    launch = VIRTUAL | {"link": {"matches": False}}
    path = make_run("run", level="intra_socket", launch=launch)
    make_run("run", level="inter_node", launch=VIRTUAL | {"link": {}})
    assert read_runs([path]).warnings == ()


def test_packing_becomes_tables_of_a_profile_next_to_its_levels(make_run, tmp_path):
    messages, packed = make_run("run"), tmp_path / "packing"
    launch = {"flavour": "mpich", "version": "5.0.2", "launcher": "local", "transport": "unknown"}
    machine = {"cpu_model": "Test CPU", "cores": 8, "sockets": 1, "host": "testhost"}
    run = Run.create(packed, machine=machine, command=["earlybird"], seed=1)
    run.append_launch({"id": "0", "kernel": "packing"} | launch)
    config = {"mpi": "mpich", "packing": "strided", "cache": "cold"}
    times_s = {1024: 2e-6, 64: 1e-6, 4096: 8e-6}
    run.append_samples(
        Sample(
            "packing", "time_per_step", config | {"size_bytes": size}, "0", np.full(3, time_s), method="pack"
        )
        for size, time_s in times_s.items()
    )
    with pytest.raises(InputError, match=r"packing without messages.*then run `earlybird fit RUN .*packing`"):
        read_runs([packed])
    fit_profile(read_runs([messages, packed])).save(tmp_path / "profile.json")
    (form,) = Profile.load(tmp_path / "profile.json").packings
    assert (form.what.packing, form.what.cache, form.what.method) == ("strided", "cold", "pack")
    assert form.parameters.size_bytes == (64, 1024, 4096)
    sizes = np.array([0, 8, 64, 544, 4096, 8192])
    assert form.times_s(sizes) == pytest.approx([0, 1e-6, 1e-6, 1.5e-6, 8e-6, 16e-6])
