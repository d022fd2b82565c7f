"""The driver of the fuzz targets; CI runs the targets by `make fuzz`."""

import subprocess

import pytest

from tools.fuzzing import native

STOPS_AT_X = """
#include <cstdint>
#include <cstdlib>
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size > 0 && data[0] == 'x') std::abort();
  return 0;
}
"""


def test_every_target_has_a_corpus():
    folder = native.CORPUS.parent
    files = [path for ending in ("*.c", "*.cpp") for path in folder.glob(ending)]
    assert native.target_names() == sorted({path.stem for path in files} - {"driver", "refusing"})


@pytest.mark.thorough
def test_a_target_that_stops_leaves_the_input(tmp_path):
    (tmp_path / "program.cpp").write_text(STOPS_AT_X)
    driver = native.CORPUS.parent / "driver.cpp"
    program = tmp_path / "program"
    flags = ["-std=c++17", "-g", "-fsanitize=address,undefined"]
    subprocess.run(["c++", *flags, tmp_path / "program.cpp", driver, "-o", program], check=True, timeout=120)
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "letter").write_text("x")
    result = subprocess.run([program, "corpus", "0"], cwd=tmp_path, capture_output=True, timeout=60)
    assert result.returncode != 0
    assert (tmp_path / "crash-input").read_text() == "x"
