"""Calls in threads: results in order, the exception of a call, and an interrupt that does not wait."""

import signal
import subprocess
import sys
import time

import pytest

from earlybird.data.threads import in_threads


def test_results_are_in_the_order_of_the_items():
    assert in_threads(lambda k: (time.sleep(0.001 * (k % 3)), k * k)[1], list(range(20))) == [
        k * k for k in range(20)
    ]


def test_the_exception_of_a_call_is_raised():
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda k: 1 / k, [1, 0, 2])


def test_an_interrupt_does_not_wait_for_calls_under_way():
    program = (
        "import time\nfrom earlybird.data.threads import in_threads\nprint('begun', flush=True)\n"
        "in_threads(lambda k: time.sleep(60), [0])\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout.readline() == b"begun\n"
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=60)
    assert child.returncode != 0 and b"KeyboardInterrupt" in stderr
