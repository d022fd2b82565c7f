"""libearlybird and the recorder read and print numbers with a point in a program whose locale has a decimal
comma."""

import json
import shutil
import subprocess

import pytest

from earlybird.data.recording import load_recording
from earlybird.machine.flavours import find_flavour
from tests.partitioned import run_ranks, suite_program

pytestmark = pytest.mark.mpi
NUMBERS = 'LC_NUMERIC\ndecimal_point "<U002C>"\nthousands_sep ""\ngrouping -1\nEND LC_NUMERIC\n'
# Runs before main, as a program would set its locale before MPI_Init.
PRELOADED = """
#include <locale.h>
#include <stdlib.h>
__attribute__((constructor)) static void set(void) {
  if (!setlocale(LC_NUMERIC, "comma") || *localeconv()->decimal_point != ',') abort();
}
"""


@pytest.fixture
def comma_locale(tmp_path):
    """Variables of the environment with which a process has a locale with a decimal comma."""
    localedef = shutil.which("localedef")
    if localedef is None:
        pytest.skip("localedef is not on PATH")
    (tmp_path / "comma.src").write_text(NUMBERS)
    command = [localedef, "-c", "-i", "comma.src", "-f", "ANSI_X3.4-1968", "./comma"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    if not (tmp_path / "comma" / "LC_NUMERIC").exists():
        pytest.skip(f"localedef cannot make a locale: {made.stderr[-200:]}")
    (tmp_path / "comma.c").write_text(PRELOADED)
    library = tmp_path / "comma.so"
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "comma.c", "-o", library], check=True)
    return {"LOCPATH": str(tmp_path), "LD_PRELOAD": str(library)}


def test_numbers_have_a_decimal_point_in_every_locale(any_mpi, comma_locale, tmp_path):
    flavour = find_flavour(any_mpi)
    costs = "intra_node_protocols=0:1.25e-06:1.5e-07:1.75e+09"
    trace = tmp_path / "trace.json"
    env = {"EARLYBIRD_COSTS": costs, "EARLYBIRD_STATS": "1", "EARLYBIRD_TRACE": str(trace)}
    # In a shared folder another user may have made a link of the name under which the trace is written first.
    (tmp_path / "outside").write_text("kept")
    (tmp_path / "trace.json.part").symlink_to(tmp_path / "outside")
    program = [suite_program(flavour), "pready_out_of_order_delivers_every_partition"]
    status, output = run_ranks(flavour, 2, ["env", *_assigned(comma_locale), *program], env, 60)
    assert status == 0, output[-2000:]
    assert f'EARLYBIRD_COSTS="{costs}"' in output
    assert json.loads(trace.read_text())
    assert (tmp_path / "outside").read_text() == "kept"


def test_a_recording_can_be_read_whatever_the_locale_of_the_program(
    any_mpi, comma_locale, own_process, tmp_path
):
    flavour = find_flavour(any_mpi)
    library, locales = comma_locale["LD_PRELOAD"], comma_locale["LOCPATH"]
    program = f"{suite_program(flavour)} pready_out_of_order_delivers_every_partition"
    script = f"LD_PRELOAD=$LD_PRELOAD:{library} LOCPATH={locales} exec {program}"
    launch = ["mpiexec", "-n", 2, "sh", "-c", script]
    own_process("record", "-o", "rec", "--mpi", any_mpi, "--interpose", "--", *launch, timeout=60)
    recording = load_recording(tmp_path / "rec")
    assert len(recording.ranks) == 2 and {one.end for one in recording.ranks.values()} == {"finalize"}


def _assigned(variables: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in variables.items()]
