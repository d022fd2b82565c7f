"""The structures of tests/core_library.py are as long as the library's, which writes into them."""

import ctypes
import subprocess

import pytest

from earlybird.toolchain.build import native_sources
from tests import core_library

NAMES = {
    "Spread": "eb_spread", "Segments": "eb_segments", "Tags": "eb_tags", "Ids": "eb_ids",
    "Protocol": "eb_protocol", "Cost": "eb_cost", "Observation": "eb_observation", "Cut": "eb_cut",
    "Proposal": "eb_proposal", "PlanInput": "eb_planner_input", "PolicyTerms": "eb_terms",
    "Option": "eb_option", "Times": "eb_times", "Policy": "eb_policy", "Plan": "eb_plan",
}  # fmt: skip
HEADERS = (
    "segmentation/candidates",
    "segmentation/planner",
    "segmentation/policy",
    "segmentation/segment",
    "tags/ids",
    "tags/tags",
)


@pytest.fixture(scope="module")
def sizes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sizes")
    includes = "".join(f'#include "partitioned/{header}.h"\n' for header in HEADERS)
    prints = "".join(f'printf("%zu\\n", sizeof({name}));' for name in NAMES.values())
    (folder / "sizes.c").write_text(f"#include <stdio.h>\n{includes}int main(void) {{ {prints} }}\n")
    command = ["cc", "-std=gnu11", "-D_GNU_SOURCE", f"-I{native_sources()}", "sizes.c", "-o", "sizes"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    printed = subprocess.run(
        [folder / "sizes"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    return dict(zip(NAMES, map(int, printed.split()), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_structure_is_as_long_as_the_librarys(sizes, name):
    assert ctypes.sizeof(getattr(core_library, name)) == sizes[name]
