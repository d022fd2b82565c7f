"""Lines of figures: raw values are drawn where there are some."""

import numpy as np

from earlybird.present.core.lines import raw_samples


def test_only_times_above_0_are_drawn():
    drawn = raw_samples("raw", "mpich", [(8.0, np.array([])), (16.0, np.array([-1e-9, 2e-6]))])
    assert (drawn["x"], drawn["y"]) == ([16.0], [2e-6])
