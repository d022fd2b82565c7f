"""The fuzz targets of the native parsers compile and accept their corpus and some mutations of it."""

import subprocess

import pytest

from tests.conftest import require_mpi
from tools import fuzz

pytestmark = pytest.mark.mpi
STOPS_AT_X = """
#include <cstdint>
#include <cstdlib>
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size > 0 && data[0] == 'x') std::abort();
  return 0;
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    require_mpi("mpich")
    folder = tmp_path_factory.mktemp("fuzz")
    fuzz.build(folder)
    return folder


def test_every_target_has_a_corpus():
    folder = fuzz.CORPUS.parent
    files = [path for ending in ("*.c", "*.cpp") for path in folder.glob(ending)]
    assert fuzz.target_names() == sorted({path.stem for path in files} - {"driver", "refusing"})


@pytest.mark.parametrize("name", fuzz.target_names())
def test_the_corpus_and_mutations_of_it_pass(built, tmp_path, name):
    result = fuzz.run(built, name, 0.2, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_target_that_stops_leaves_the_input(tmp_path):
    (tmp_path / "program.cpp").write_text(STOPS_AT_X)
    driver = fuzz.CORPUS.parent / "driver.cpp"
    program = tmp_path / "program"
    flags = ["-std=c++17", "-g", "-fsanitize=address,undefined"]
    subprocess.run(["c++", *flags, tmp_path / "program.cpp", driver, "-o", program], check=True, timeout=120)
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "letter").write_text("x")
    result = subprocess.run([program, "corpus", "0"], cwd=tmp_path, capture_output=True, timeout=60)
    assert result.returncode != 0
    assert (tmp_path / "crash-input").read_text() == "x"
