"""What is read of an ELF file is what the compiler put there; anything else is no program."""

import shutil
import subprocess

import pytest

from earlybird.machine.elf import defines, read_elf

MAIN = "int main(void) { return 0; }"


@pytest.fixture
def compiled(tmp_path):
    def compile_(*arguments, source=MAIN):
        (tmp_path / "app.c").write_text(source)
        result = subprocess.run(
            ["cc", "app.c", "-o", "app", *arguments], cwd=tmp_path, capture_output=True, text=True
        )
        if "-static" in " ".join(arguments) and result.returncode != 0:
            pytest.skip("no static libc is installed")
        assert result.returncode == 0, result.stderr
        return tmp_path / "app"

    return compile_


@pytest.mark.parametrize("how", ["-pie", "-no-pie"])
def test_a_dynamic_program_names_its_loader_and_its_libraries(compiled, how):
    elf = read_elf(compiled(how, "-Wl,--no-as-needed", "-lm"))
    assert elf.interpreter.startswith("/") and "ld" in elf.interpreter
    assert elf.needs == ("libm.so.6", "libc.so.6")


@pytest.mark.parametrize("how", ["-static", "-static-pie"])
def test_a_static_program_has_no_loader(compiled, how):
    assert read_elf(compiled(how)) == (None, ())


def test_a_shared_library_and_an_object_are_no_programs(compiled):
    assert read_elf(compiled("-shared", "-fPIC")) is None
    assert read_elf(compiled("-c")) is None


def test_a_symbol_is_defined_or_merely_referred_to(compiled):
    inside = "int MPI_Init(void) { return 0; } int PMPI_Init(void) { return 0; } " + MAIN
    assert defines(compiled(source=inside), "MPI_Init")
    assert not defines(compiled(source=inside), "Init")
    only_longer = "int PMPI_Init(void) { return 0; } " + MAIN
    assert not defines(compiled(source=only_longer), "MPI_Init")
    refers = "int MPI_Init(void); int x(void) { return MPI_Init(); }"
    assert not defines(compiled("-shared", "-fPIC", source=refers), "MPI_Init")


def test_what_is_no_elf_file_or_cut_short_is_no_program(compiled, tmp_path):
    whole = compiled().read_bytes()
    other = tmp_path / "other"
    for content in (b"", b"#!/bin/sh\n", b"\x7fELF\x01\x01", *(whole[:size] for size in (16, 64, 300, 900))):
        other.write_bytes(content)
        assert read_elf(other) is None
        assert not defines(other, "MPI_Init")
    assert read_elf(tmp_path / "none") is None
    assert read_elf(tmp_path) is None


def test_it_says_what_another_reader_says_of_a_program_of_the_system():
    from elftools.elf.elffile import ELFFile

    path = shutil.which("sh")
    with open(path, "rb") as stream:
        elf = ELFFile(stream)
        needs = [tag.needed for tag in elf.get_section_by_name(".dynamic").iter_tags("DT_NEEDED")]
        interpreter = next(elf.iter_segments("PT_INTERP")).get_interp_name()
    assert read_elf(path) == (interpreter, tuple(needs))
