"""The packing kernel under mpiexec: every step moves every double of every layout, and a wrong one is
noticed."""

import pytest

from earlybird.data.layout import parse_layout
from earlybird.launch.launcher import Request, Rules
from earlybird.launch.local import MpiexecLauncher
from earlybird.machine.flavours import find_flavour

pytestmark = pytest.mark.mpi

RULES = Rules(budget_s=0.01, min_iterations=3)
METHODS = ("pack", "unpack", "loop-pack", "loop-unpack")


def point(size_bytes=800, packing="strided", cache="hot"):
    return {"mpi": "here", "size_bytes": size_bytes, "packing": packing, "cache": cache}


def launch(mpi, tmp_path, points, methods=METHODS, rules=RULES):
    request = Request("0", "packing", points, parse_layout("1x1x1"), rules, None, 300, 120, methods)
    return MpiexecLauncher(find_flavour(mpi)).launch(request, tmp_path, lambda *_: None)


def test_every_step_moves_the_data_of_every_layout(mpi, tmp_path):
    points = [
        point(8 * count, packing) for packing in ("contiguous", "strided", "indexed") for count in (1, 999)
    ]
    points.append(point(cache="cold"))
    launched = launch(mpi, tmp_path, points)
    assert launched.cause is None
    assert [(s.config, s.method) for s in launched.samples] == [(p, m) for p in points for m in METHODS]
    assert all(sample.validated and (sample.times_s > 0).all() for sample in launched.samples)
    assert {sample.batch for sample in launched.samples[-len(METHODS) :]} == {1}


@pytest.mark.parametrize(
    ("config", "methods", "expected"),
    [
        (point(12), METHODS, "size_bytes=12; give a multiple of 8"),
        (point(packing="random"), METHODS, "packing=random; give one of contiguous, indexed, strided"),
        (point(cache="warm"), METHODS, "cache=warm; give hot or cold"),
        (point(), ("copy",), "no method copy; give some of loop-pack, loop-unpack, pack, unpack"),
        (point(), (), "needs methods"),
    ],
)
def test_what_cannot_be_measured_is_refused(any_mpi, tmp_path, config, methods, expected):
    launched = launch(any_mpi, tmp_path, [config], methods)
    assert expected in launched.cause and launched.samples == []


SHIM = """
#include <mpi.h>
/* Flips a bit of what it unpacked. */
int MPI_Unpack(const void *in, int size, int *position, void *out, int count, MPI_Datatype type,
               MPI_Comm comm) {
  int rc = PMPI_Unpack(in, size, position, out, count, type, comm);
  ((char *)out)[3] ^= 4;
  return rc;
}
"""


def test_an_mpi_that_unpacks_wrongly_is_noticed(any_mpi, tmp_path, preload_source):
    preload_source(any_mpi, SHIM)
    samples = launch(any_mpi, tmp_path, [point()]).samples
    assert [sample.validated for sample in samples] == [True, False, True, True]


def test_cold_points_have_fewer_iterations_beyond_the_budget(any_mpi, tmp_path):
    rules = Rules(budget_s=1e-6, min_iterations=12, min_cold_iterations=5)
    samples = launch(any_mpi, tmp_path, [point(cache="cold"), point()], ("pack",), rules).samples
    lengths = {sample.config["cache"]: len(sample.times_s) for sample in samples}
    assert lengths["cold"] == 5 and lengths["hot"] >= 12
