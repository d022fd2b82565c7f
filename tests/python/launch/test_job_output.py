"""The rank that a job lost, and its host, by what real mpiexecs printed on four virtual nodes when the rank
of node2 ended."""

import time

import pytest

from earlybird.launch.job_output import explain, signalled_host

MPICH = """
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 8 RUNNING AT node2
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
[proxy:1@node1] HYD_pmcd_pmip_control_cmd_cb (pm/hydra/proxy/pmip_cb.c:490): assert (!closed) failed
[proxy:1@node1] HYDT_dmxu_poll_wait_for_event (tools/demux/demux_poll.c:76): callback returned error status
[mpiexec@vm] HYDT_bscu_wait_for_completion (utils/bscu_wait.c:109): one of the processes terminated badly
"""

MPICH_STRING = """
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 26169 RUNNING AT node2
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)
This typically refers to a problem with your application.
Please see the FAQ page for debugging suggestions
"""

KILLED = "9 (Killed)"


def intel(*ranks):
    return "".join(
        f"""
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK {rank} PID 67 RUNNING AT {host}
=   KILLED BY SIGNAL: {signal}
===================================================================================
"""
        for rank, host, signal in ranks
    )


INTEL = intel((2, "node2", KILLED))

# node3 has lost its peer.
OPENMPI = """\
[node3:00000] *** An error occurred in Socket closed
[node3:00000] *** reported by process [984678401,3]
[node3:00000] *** on a NULL communicator
[node3:00000] *** Unknown error
[node3:00000] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,
[node3:00000] ***    and MPI will try to terminate your MPI job as well)
--------------------------------------------------------------------------
prterun noticed that process rank 2 with PID 187 on node node2 exited on
signal 9 (Killed).
--------------------------------------------------------------------------
"""

_LOST_PEER = """\
[node0:00000] *** An error occurred in Socket closed
[node0:00000] *** reported by process [711720961,0]
[node0:00000] *** on a NULL communicator
[node0:00000] *** Unknown error
--------------------------------------------------------------------------
prterun has exited due to process rank 0 with PID 62 on node node0 calling
"abort". This may have caused other processes in the application to be
terminated by signals sent by prterun (as reported here).
--------------------------------------------------------------------------
"""

OPENMPI_TRACE = (
    """\
[node2:00059] *** Process received signal ***
[node2:00059] Signal: Segmentation fault (11)
[node2:00059] Signal code:  (0)
[node2:00059] Failing at address: (nil)
[node2:00059] [ 0] /lib/x86_64-linux-gnu/libc.so.6(+0x3c050)[0x7fcdbe25a050]
[node2:00059] *** End of error message ***
"""
    + _LOST_PEER
)

# In another launch this named node0, which had lost its peer itself.
_OPENMPI_PEER = (
    """\
--------------------------------------------------------------------------
An MPI communication peer process has unexpectedly disconnected.  This
usually indicates a failure in the peer process (e.g., a crash or
otherwise exiting without calling MPI_FINALIZE first).

  Local host: node0
  Local PID:  62
  Peer host:  node2
--------------------------------------------------------------------------
"""
    + _LOST_PEER
)

# The proxy of node1 was killed.
_PROXY_KILLED = """\
[proxy:2@node2] HYDT_dmxu_poll_wait_for_event (tools/demux/demux_poll.c:76): callback returned error status
[mpiexec@vm] control_cb (mpiexec/pmiserv_cb.c:280): assert (!closed) failed
[mpiexec@vm] HYDT_dmxu_poll_wait_for_event (tools/demux/demux_poll.c:76): callback returned error status
[mpiexec@vm] HYD_pmci_wait_for_completion (mpiexec/pmiserv_pmci.c:173): error waiting for event
[mpiexec@vm] main (mpiexec/mpiexec.c:260): process manager error waiting for completion
"""


@pytest.mark.parametrize(
    ("text", "who", "how"),
    [
        (MPICH, "a rank on node2", "EXIT CODE: 9"),
        (MPICH_STRING, "a rank on node2", "Segmentation fault (signal 11)"),
        (INTEL, "rank 2 on node2", "KILLED BY SIGNAL: 9 (Killed)"),
        (OPENMPI, "rank 2 on node2", "signal 9 (Killed)"),
        (OPENMPI_TRACE, "a rank on node2", "Segmentation fault (11)"),
        (
            intel((2, "node1", "11 (Segmentation fault)"), (3, "node1", KILLED)),
            "rank 2 on node1",
            "KILLED BY SIGNAL: 11 (Segmentation fault)",
        ),
        (intel((2, "node1", KILLED), (3, "node1", KILLED)), "a rank on node1", f"KILLED BY SIGNAL: {KILLED}"),
    ],
)
def test_the_rank_that_failed_is_named_with_its_host(text, who, how):
    assert explain(255, text) == f"mpiexec reports that {who} failed: {how}"


def test_a_rank_that_has_lost_its_peer_is_not_named_as_the_one_that_failed():
    for text in (_LOST_PEER, _OPENMPI_PEER):
        assert "mpiexec reports that" not in explain(14, text)
    killed = intel((2, "node1", KILLED), (0, "node0", KILLED))
    assert explain(255, killed) == f"KILLED BY SIGNAL: {KILLED}"


def test_the_host_of_a_rank_that_has_lost_its_peer_is_no_reason():
    expected = "Open MPI does not say which rank failed: a rank reports an error in Socket closed"
    assert explain(14, _LOST_PEER) == explain(14, _OPENMPI_PEER) == expected
    assert explain(1, _LOST_PEER + "kernel: error of the disk\n") == "kernel: error of the disk"


def test_the_internal_messages_of_mpiexec_are_no_reason():
    assert (
        explain(255, _PROXY_KILLED) == "mpiexec has no connection to one of the nodes and does not say which"
    )
    assert explain(255, _PROXY_KILLED + MPICH_STRING) == (
        "mpiexec reports that a rank on node2 failed: Segmentation fault (signal 11)"
    )


def test_the_exit_string_is_of_the_block_before_it():
    first = MPICH.replace("node2", "node1")
    assert explain(255, first + MPICH_STRING) == (
        "mpiexec reports that a rank on node2 failed: Segmentation fault (signal 11)"
    )


@pytest.mark.parametrize("end", ["", MPICH_STRING])
def test_the_text_of_many_ranks_is_searched_once(end):
    """Searched to its end for each rank, this takes a minute."""
    text = intel(*((rank, f"node{rank}", KILLED) for rank in range(3000)))
    begin_s = time.process_time()
    explain(255, text + end)
    assert time.process_time() - begin_s < 5


def test_what_a_rank_says_of_itself_comes_before_what_mpiexec_says_of_it():
    assert explain(1, "earlybird kernel: cannot read r.json\n" + INTEL) == "cannot read r.json"


# What Slurm 22.05 printed with --kill-on-bad-exit; the tasks after `Terminating` were ended by it.
SRUN = """\
srun: error: n3: task 2: {how}
srun: launch/slurm: _step_signal: Terminating StepId=37.0
srun: error: n2: task 1: Killed
slurmstepd-n1: error: *** STEP 37.0 ON n1 CANCELLED AT 2026-11-28T10:03:46 ***
srun: error: n1: task 0: Terminated
srun: Force Terminated StepId=37.0
"""


@pytest.mark.parametrize(
    ("how", "signalled"),
    [("Killed", True), ("Segmentation fault (core dumped)", True), ("Exited with exit code 3", False)],
)
def test_the_task_that_failed_first_under_slurm_is_named_with_its_node(how, signalled):
    cause = explain(137, SRUN.format(how=how))
    assert cause == f"srun reports that rank 2 on n3 failed: {how}"
    assert signalled_host(cause) == (("n3", how) if signalled else None)


def test_a_step_that_slurm_cancels_has_its_reason():
    cancelled = SRUN[SRUN.index("slurmstepd") :].replace("46 *", "46 DUE TO TIME LIMIT *")
    assert "CANCELLED AT 2026-11-28T10:03:46 DUE TO TIME LIMIT" in explain(143, cancelled)
    two = "srun: error: n3: task 2: Killed\nsrun: error: n2: task 1: Killed\n"
    assert "CANCELLED" in explain(137, two + cancelled)  # which of them was first is not known
