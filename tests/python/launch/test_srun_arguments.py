"""--srun: what is passed to srun, and what would contradict a launch, however it is written."""

import pytest

from earlybird.data.errors import InputError
from earlybird.launch.srun_arguments import SrunArguments, parse_srun_arguments


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (None, ()),
        ("", ()),
        ("--network=single_node_vni,job_vni", ("--network=single_node_vni,job_vni",)),
        ("-p debug -A proj", ("-p", "debug", "-A", "proj")),
        ("-pdebug -uQ", ("-pdebug", "-uQ")),
        ("-up debug", ("-up", "debug")),
        ("-I30 -k --no-kill", ("-I30", "-k", "--no-kill")),
        ("--comment='a b' --mem=0", ("--comment=a b", "--mem=0")),
        ("--cpu-freq=high --gpus-per-task=1", ("--cpu-freq=high", "--gpus-per-task=1")),
        ("--plugin-of-the-site", ("--plugin-of-the-site",)),
    ],
)
def test_other_options_are_passed_on(text, arguments):
    assert parse_srun_arguments(text).arguments == arguments


def test_the_plugin_and_the_component_are_read():
    assert parse_srun_arguments("--mpi=pmix --het-group=1 -u") == SrunArguments(
        "--mpi=pmix --het-group=1 -u", ("--het-group=1", "-u"), "pmix", 1
    )
    assert parse_srun_arguments("--mpi=pmi2 --mpi=pmix_v4").mpi == "pmix_v4"  # as srun takes the last


@pytest.mark.parametrize(
    "text",
    [
        "-n4", "-n 4", "--ntasks=4", "--nta=4", "--ntasks 4", "-N2", "-uN2", "--nodes=2", "--node=2", "-wn1",
        "--nodelist=n1", "--nodel=n1", "-x n1", "--exclude=n1", "--excl=n1", "--ntasks-per-node=1",
        "-mcyclic", "--distribution=block", "--dist=plane=2", "-c 4", "--cpus-per-task=4", "--cpu-bind=cores",
        "--hint=nomultithread", "--exact", "--exclusive", "--overlap", "-O", "--overcommit", "--export=NONE",
        "--export-file=f", "-K0", "--kill-on-bad-exit=0", "--output=x", "-o x", "-l", "-ul", "--label",
        "-D /tmp", "--multi-prog", "--pty", "--test-only", "--help", "--pack-group=1", "-r1", "--relative=1",
        "-F nodes", "-Z", "--jobid=7", "-t 10", "-ut10", "--time=10", "--time-min=1", "-W5",
        "--wait=5", "--signal=KILL@60", "--deadline=now+1hour", "-v", "-uv", "--verbose", "--verb",
        "--slurmd-debug=verbose",
    ],
)  # fmt: skip
def test_what_the_launch_sets_itself_is_refused(text):
    with pytest.raises(InputError, match=r"^--srun has -.*; omit it$"):
        parse_srun_arguments(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("'--network=a", "within quotes"),
        ("./app", "for the program"),
        ("--network single_node_vni", "as --name=value"),
        ("-u -- app", "for the program"),
        ("-", "for the program"),
        ("-p", "needs a value"),
        ("-y", "no option -y"),
        ("--mpi", "without a value"),
        ("--mp=pmix", "write --mpi=VALUE in full"),
        ("--het=1", "write --het-group=VALUE in full"),
        ("--mpi=list", "--mpi=list` prints"),
        ("--mpi=", "give a plugin"),
        ("--mpi='a b'", "give a plugin"),
        ("--het-group=0,1", "one component"),
        ("--het-group=0-1", "one component"),
        ("--het-group=\u00b2", "one component"),
    ],
)
def test_what_is_no_option_or_incomplete_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        parse_srun_arguments(text)
