"""The Python interface of docs/python.md, and the notebook that uses it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

import earlybird
from earlybird import InputError, Layout, Pattern, Predictor, Profile, Run

ROOT = Path(__file__).parents[2]
WORKED = ROOT / "examples" / "worked"


def test_the_names_are_there_and_nothing_large_is_imported_for_them():
    assert set(earlybird.__all__) <= set(dir(earlybird))
    for name in earlybird.__all__:
        assert getattr(earlybird, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        earlybird.Nothing  # noqa: B018
    script = "import sys, earlybird; print('numpy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_a_prediction_starts_without_scipy_which_would_take_a_fifth_of_the_time():
    script = "import sys, earlybird.cli.commands.predict; print('scipy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_type_checkers_may_use_the_annotations():
    assert (Path(earlybird.__file__).parent / "py.typed").is_file()


def test_a_prediction_from_arrays_is_that_of_the_files(tmp_path):
    loaded, profile = Pattern.load(WORKED / "pattern.csv"), Profile.load(WORKED / "profile.json")
    made = Pattern.from_arrays(loaded.src.tolist(), loaded.dst, loaded.bytes.astype(float))
    assert made.sha256() == loaded.sha256()
    prediction = Predictor(made, Layout.from_arrays([0, 0, 0, 0])).predict(profile)
    assert prediction.time_s == pytest.approx(np.array([116, 191, 191, 191]) / 3e6)
    frame = prediction.to_frame()
    assert frame.index.name == "rank" and frame["time_s"].tolist() == prediction.time_s.tolist()
    made.save(tmp_path / "p.npz")
    profile.save(tmp_path / "p.json")
    Layout.parse("1x1x4").save(tmp_path / "l.csv")
    again = Predictor(Pattern.load(tmp_path / "p.npz"), Layout.parse(str(tmp_path / "l.csv")))
    assert again.predict(Profile.load(tmp_path / "p.json")).time_s.tolist() == prediction.time_s.tolist()


@pytest.mark.parametrize("name", ["L.txt", "layout", "L.CSV"])
def test_a_layout_is_saved_under_a_name_that_parse_reads_only(tmp_path, name):
    with pytest.raises(
        InputError, match=f"but the file to write is .*{name}'; give a name that ends in .csv"
    ):
        Layout.parse("1x1x2").save(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_sparse_matrix_is_a_pattern_without_its_diagonal():
    matrix = csr_array(np.array([[5, 10, 0], [0, 0, 20], [30, 0, 7]]))
    pattern = Pattern.from_scipy(matrix)
    rows = zip(pattern.src.tolist(), pattern.dst.tolist(), pattern.bytes.tolist(), strict=True)
    assert sorted(rows) == [(0, 1, 10), (1, 2, 20), (2, 0, 30)]
    with pytest.raises(InputError, match="2 rows and 3 columns"):
        Pattern.from_scipy(csr_array(np.ones((2, 3))))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Pattern.from_arrays([0], [1], [1.5]), "give integers"),
        (lambda: Pattern.from_arrays([0], [1], ["a"]), "give integers"),
        (lambda: Pattern.from_arrays([[0]], [[1]], [[2]]), "arrays of one dimension"),
        (lambda: Pattern.from_arrays([[0], [0, 1]], [1], [2]), "arrays of one dimension"),
        (lambda: Pattern.from_arrays([0, 1], [1], [2]), "equal length"),
        (lambda: Pattern.from_arrays([0], [1], [1e300]), r"contains 1e\+300; .* 0 to 4611686018427387904"),
        (lambda: Pattern.from_arrays([0], [1], [float("inf")]), "contains inf"),
        (lambda: Pattern.from_arrays([0], [1], np.array([2**63], dtype=np.uint64)), f"contains {2**63}"),
        (lambda: Pattern.from_scipy(np.eye(2)), "of the type ndarray; give a sparse matrix"),
        (lambda: Pattern.from_scipy(coo_array(np.ones(4))), "with rows and columns"),
        (lambda: Layout.from_arrays([]), "node"),
        (lambda: Layout.from_arrays([0, -1]), "a node is -1; they count from 0"),
        (lambda: Layout.from_arrays(np.array([2**64 - 10**9, 0], np.uint64)), "a node is 18446744072709"),
        (lambda: Layout.from_arrays([[0], [0, 1]]), "the node and the socket of each rank"),
        (lambda: Layout(np.array([0, -(10**9)]), np.array([0, 0]), "given"), "a node is -1000000000"),
        (lambda: Layout(np.array([0, 1]), np.array([0]), "given"), "as whole numbers"),
        (lambda: Layout.from_arrays([0, 1], [0]), "node"),
        (lambda: Layout.from_arrays([0.5]), "node"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_wrong_arrays_are_refused_in_a_sentence(make, says):
    with pytest.raises(InputError, match=says):
        make()


WRONG_PATHS = (None, 3, ["p.csv"], b"p.csv")


@pytest.fixture(scope="module")
def worked():
    """(pattern, layout, profile)"""
    loaded = Pattern.load(WORKED / "pattern.csv"), Layout.parse("1x1x4")
    return (*loaded, Profile.load(WORKED / "profile.json"))


@pytest.mark.parametrize("wrong", [None, "p.json", 2.5, [1], {"a": 1}, np.eye(2), object(), Profile])
def test_objects_of_another_kind_are_refused_in_a_sentence(worked, wrong):
    pattern, layout, profile = worked
    predictor = Predictor(pattern, layout)
    predictor.slowest_now_s(profile)
    named = "None" if wrong is None else f"of the type {type(wrong).__name__}"
    for make, says in (
        (lambda: Predictor(wrong, layout), rf"the pattern is {named}; give a Pattern, such as"),
        (lambda: Predictor(pattern, wrong), rf"the layout is {named}; give a Layout, such as"),
        (lambda: predictor.predict(wrong), rf"the profile is {named}; give a Profile, such as"),
        (lambda: predictor.slowest_s(wrong), rf"the profile is {named}; give a Profile, such as"),
        (lambda: predictor.slowest_now_s(wrong), rf"the profile is {named}; give a Profile, such as"),
        (lambda: predictor.predict(profile, [wrong]), "the model is .*; choose one of staircase"),
        (lambda: predictor.predict(profile, share=wrong), "the share is .*; choose one of message"),
        (lambda: Predictor(pattern, layout, mixed=wrong), "the mixed is .*; choose one of per-level"),
        (lambda: Pattern.from_scipy(wrong), "the matrix is of the type .*; give a sparse matrix"),
        (lambda: predictor.update({0: wrong}), "rank 0 is moved to .*; give"),
        (
            lambda: predictor.update(resized={0: wrong}),
            "message 0 is given .* bytes; give",
        ),
    ):
        with pytest.raises(InputError, match=f"(?s){says}"):
            make()
    for name in ("moved", "resized") if wrong is not None and not isinstance(wrong, dict) else ():
        with pytest.raises(InputError, match=f"{name} is {named}; give the new"):
            predictor.update(**{name: wrong})
    assert predictor.slowest_now_s(profile) == predictor.predict(profile).time_s.max()


@pytest.mark.parametrize("wrong", WRONG_PATHS)
def test_what_is_no_path_is_refused_in_a_sentence(worked, wrong):
    pattern, layout, profile = worked
    for use in (Pattern.load, Profile.load, Run.load, pattern.save, layout.save, profile.save):
        with pytest.raises(InputError, match=r" is (None|of the type \w+); give a path"):
            use(wrong)
    with pytest.raises(InputError, match=r"the layout is .*; give a str, such as '2x2x8'"):
        Layout.parse(wrong)
    with pytest.raises(InputError, match=r"map_by is .*; give one of core, socket, node"):
        Layout.parse("1x1x2", wrong)


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
@pytest.mark.parametrize("suffix", ["", ".csv", ".npz", ".mtx", ".json"])
def test_what_is_no_valid_name_of_a_file_is_refused_in_a_sentence(worked, name, suffix):
    pattern, layout, profile = worked
    with pytest.raises(InputError):
        Layout.parse(f"{name}{suffix}")
    for load in (Pattern.load, Profile.load, Run.load):
        with pytest.raises(InputError):
            load(f"{name}{suffix}")
    for save in (pattern.save if suffix != ".json" else profile.save, layout.save, profile.save):
        invalid = r"cannot write 'a.*, which is no valid name"
        says = "give a name that ends in .csv" if save == layout.save and suffix != ".csv" else invalid
        with pytest.raises(InputError, match=says):
            save(f"{name}{suffix}")


def test_a_layout_of_a_path(tmp_path):
    Layout.from_arrays([1, 0]).save(tmp_path / "l.csv")
    assert Layout.parse(tmp_path / "l.csv").node.tolist() == [1, 0]


def test_a_run_is_a_table_with_a_row_for_each_iteration():
    run = Run.load(ROOT / "tests" / "recorded" / "epyc-two-cores" / "openmpi" / "run")
    frame = run.frame()
    samples = run.samples()
    assert len(frame) == sum(len(sample.times_s) for sample in samples)
    assert {"kernel", "quantity", "launch", "size_bytes", "iteration", "time_s", "is_warmup"} <= set(frame)
    assert frame["time_s"].sum() == pytest.approx(sum(sample.times_s.sum() for sample in samples))
    assert frame["is_warmup"].sum() == sum(sample.warmup for sample in samples)


def test_the_notebook_runs(monkeypatch):
    """Its cells one after the other, in its folder."""
    folder = ROOT / "examples" / "notebook"
    notebook = json.loads((folder / "improve_a_layout.ipynb").read_text())
    monkeypatch.chdir(folder)
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "improve_a_layout.ipynb", "exec"), names)
    assert names["improved_s"] < names["scattered_s"]
