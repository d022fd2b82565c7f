"""What a check asks of its launcher."""

import math

import pytest

from earlybird.check.plan import make_plan
from earlybird.measure.check import CheckSettings, run_check


class _Asked(Exception):
    pass


class _Launcher:
    name, flavour = "stand-in", "mpich"

    def check(self, layout):
        pass

    def launch(self, request, scratch, heard):
        raise _Asked(request)


@pytest.mark.parametrize("is_real", [True, False])
def test_only_the_points_of_a_simulation_are_limited(tmp_path, is_real):
    """A simulation may take much longer than what it simulates."""
    with pytest.raises(_Asked) as asked:
        plan = make_plan(4, facts=is_real)
        run_check(_Launcher(), plan, CheckSettings(stall_limit_s=7.0), tmp_path, None, lambda *_: None)
    (request,) = asked.value.args
    assert request.stall_limit_s == 7.0
    assert math.isfinite(request.time_limit_s) is is_real
    assert request.time_limit_s > plan.total_s()
