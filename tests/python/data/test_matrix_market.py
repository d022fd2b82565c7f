"""Matrix Market is read as SciPy reads it, and refused where SciPy crashes, guesses or takes memory."""

import io
import tracemalloc

import numpy as np
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array

from earlybird.data.errors import InputError
from earlybird.data.matrix_market import is_matrix_market, most_entries, parse_matrix_market

HEAD = "%%MatrixMarket matrix "


def entries(text):
    matrix = parse_matrix_market(HEAD + text, "the file")
    value = matrix.value if matrix.value is not None else np.ones(len(matrix.row))
    return (matrix.num_rows, matrix.num_columns), list(
        zip(matrix.row.tolist(), matrix.column.tolist(), value.tolist(), strict=True)
    )


def entries_of_scipy(text):
    matrix = coo_array(scipy.io.mmread(io.BytesIO((HEAD + text).encode()), spmatrix=False))
    return matrix.shape, list(
        zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True)
    )


@st.composite
def matrices(draw):
    layout = draw(st.sampled_from(["coordinate", "array"]))
    field = draw(
        st.sampled_from(["real", "integer", "complex", "double"] + ["pattern"] * (layout != "array"))
    )
    symmetries = ["general", "symmetric"] + ["skew-symmetric"] * (field != "pattern")
    symmetry = draw(st.sampled_from(symmetries + ["hermitian"] * (field == "complex")))
    rows = draw(st.integers(1, 4))
    columns = draw(st.integers(1, 4)) if symmetry == "general" else rows
    below = [
        (row, column)
        for column in range(columns)
        for row in range(rows)
        if symmetry == "general" or row > column or (row == column and symmetry != "skew-symmetric")
    ]
    number = st.integers(-9, 9).map(str) if field == "integer" else st.floats(-1e9, 1e9).map(repr)
    words = {"pattern": 0, "complex": 2}.get(field, 1)
    places = draw(st.permutations(below)) if layout == "coordinate" else below
    lines = [f"{layout} {field} {symmetry}", "% a remark", f"{rows} {columns}"]
    lines[-1] += f" {len(places)}" if layout == "coordinate" else ""
    for row, column in places:
        place = [str(row + 1), str(column + 1)] if layout == "coordinate" else []
        lines.append(
            draw(st.sampled_from([" ", "\t", "  "])).join(place + [draw(number) for _ in range(words)])
        )
    return "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n"]))


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(text=matrices())
def test_entries_are_those_that_scipy_reads(text):
    assert entries(text) == entries_of_scipy(text)


def test_exponents_of_fortran_and_signs_are_read():
    assert entries("coordinate real general\n2 2 1\n+2 1 -1.5D+03\n") == ((2, 2), [(1, 0, -1500.0)])


def test_large_integers_are_exact():
    text = f"coordinate integer general\n2 2 2\n1 2 {2**62 - 1}\n2 1 {2**53 + 1}\n"
    assert [size for *_, size in entries(text)[1]] == [2**62 - 1, 2**53 + 1]


def test_whole_numbers_are_read_in_the_forms_that_programs_write():
    assert entries("coordinate integer general\n2 2 2\n1 2 8.0\n2 1 -3\n") == (
        (2, 2), [(0, 1, 8), (1, 0, -3)]
    )  # fmt: skip
    assert entries("array integer general\n1 2\n8.0\n1e3\n") == ((1, 2), [(0, 0, 8), (0, 1, 1000)])
    text = f"coordinate unsigned-integer general\n2 2 2\n1 2 {2**64 - 1}\n2 1 7\n"
    assert entries(text) == ((2, 2), [(0, 1, 2**64 - 1), (1, 0, 7)])
    text = "%matrixmarket Matrix coordinate pattern general\n2 2 1\n1 2\n"
    assert is_matrix_market(text) and parse_matrix_market(text, "the file").column.tolist() == [1]


def test_the_most_entries_count_mirrored_ones_but_no_comments():
    text = "coordinate pattern {}\n% a\n%b\n3 3 1\n2 1\n"
    assert most_entries(HEAD + text.format("general")) == 4
    assert most_entries(HEAD + text.format("symmetric")) == 8


def test_an_array_of_nothing_has_no_entries():
    assert entries("array integer general\n0 0\n") == ((0, 0), [])
    assert entries("coordinate pattern general\n0 0 0") == ((0, 0), [])
    assert entries("array real skew-symmetric\n1 1\n") == ((1, 1), [])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1|does not begin"),
        ("coordinate pattern general", "line 1 is '.*', not its numbers of rows"),
        (
            "coordinate pattern general\n2 2\n",
            "line 2 is '2 2', not .* rows, columns and entries",
        ),
        ("array real general\n2 2 1\n1\n", "not its numbers of rows and columns"),
        ("array pattern general\n1 1\n", "has no values"),
        ("coordinate logical general\n1 1 0\n", "line 1 has 'logical', not one of real"),
        ("coordinate real symmetric\n2 3 0\n", "symmetric, but has 2 rows and 3 columns"),
        ("coordinate real general\n2 2 2\n1 1 1\n", "declares 2 entries, but has 1 lines"),
        ("coordinate real general\n2 2 1\n1 1 1\n2 2 2\n", "declares 1 entries, but has 2 lines"),
        ("coordinate real general\n2 2 3000000000\n1 1 1\n", "declares 3000000000 entries, but has"),
        ("coordinate real general\n2 2 -1\n", "not its numbers"),
        (f"coordinate real general\n{10**20} 2 0\n", "not its numbers"),
        ("array real general\n99999999999 99999999999\n1\n", "declares 9{11}8 0{10}1 entries|but has"),
        ("coordinate integer general\n2 2 1\n1 2 1.5\n", "line 3 is '1 2 1.5', not 3 whole numbers"),
        ("coordinate integer general\n2 2 2\n1 2 8.0\n2 1 1.5\n", "line 4 is '2 1 1.5', not 3 whole"),
        ("coordinate integer general\n2 2 1\n1.0 2 8\n", "line 3 is '1.0 2 8', not 3 whole"),
        ("coordinate unsigned-integer general\n2 2 1\n1 2 -8\n", "line 3 is '1 2 -8', not 3 whole"),
        (f"coordinate integer general\n2 2 1\n1 2 {2**63}\n", "line 3 is .*whole numbers"),
        ("coordinate integer general\n2 2 2\n1 2\n3 4 5 6\n", "line 3 is '1 2', not 3 whole"),
        ("coordinate real general\n2 2 1\n1 2 1_0\n", "line 3 has '_'"),
        ("coordinate real general\n2 2 1\n1 2 ٣\n", "line 3 has '٣'"),
        ("coordinate integer general\n%\n3 3 2\n2 1 5\n3 2 4\0\n", r"line 5 has '\\x00'"),
        ("coordinate pattern general\n2 2 1\n0 1\n", "line 3 has row 0 and column 1, outside 2 rows"),
        ("coordinate pattern symmetric\n2 2 1\n\n3 1\n", "line 4 has row 3 and column 1, outside 2 rows"),
    ],
)
def test_what_is_no_matrix_is_refused_in_one_sentence(text, says):
    tracemalloc.start()
    with pytest.raises(InputError, match=says) as refused:
        entries(text)
    assert "\n" not in str(refused.value) and tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("row", [-(2**63), 2**63 - 1])
def test_an_index_at_the_end_of_64_bits_is_refused_without_a_warning(row):
    text = f"%%MatrixMarket matrix coordinate integer general\n4 4 1\n{row} 2 8\n"
    with pytest.raises(InputError, match=f"has row {row}"):
        parse_matrix_market(text, "m")
