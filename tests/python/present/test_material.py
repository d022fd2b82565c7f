"""Inputs are detected by their content; other files are refused with one sentence."""

import re
from pathlib import Path

import pytest

import earlybird
from earlybird.cli.commands.show import show
from earlybird.data.errors import InputError
from earlybird.data.pattern import save_pattern
from earlybird.present.material import collect


def test_every_kind_of_input_is_detected(everything, tmp_path, make):
    prediction = make.write_json(tmp_path / "prediction.json", make.prediction(make.pattern()).to_json())
    advice = make.write_json(tmp_path / "advice.json", make.advice().to_json())
    material = collect([*everything, prediction, advice])
    assert [run.name for run in material.runs] == ["run", "replay"]
    assert [profile.id for profile in material.profiles] == ["profile-mpich", "profile-openmpi"]
    assert [one.operation for one in material.advice] == ["pipeline"]
    assert len(material.comparisons) == len(material.patterns) == len(material.predictions) == 1


def test_a_file_given_directly_and_inside_its_run_counts_once(everything):
    replay = everything[-1]
    material = collect([replay, replay / "comparison.json", replay / "pattern.npz", replay / "run.json"])
    assert (len(material.runs), len(material.comparisons), len(material.patterns)) == (1, 1, 1)


def test_a_link_to_itself_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "loop.json").symlink_to("loop.json")
    with pytest.raises(InputError, match=r"loop.json cannot be read"):
        collect([tmp_path / "loop.json"])


def test_a_pattern_loads_from_csv(tmp_path, make):
    save_pattern(make.pattern(), tmp_path / "mesh.csv")
    assert collect([tmp_path / "mesh.csv"]).patterns[0].sha256() == make.pattern().sha256()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("other.json", '{"schema": "somebody.else/3"}', "somebody.else/3"),
        ("bare.json", "{}", "None"),
        ("list.json", "[1, 2]", "must hold an object"),
        ("broken.json", '{"schema": ', "not JSON"),
        ("layout.csv", "rank,node,socket\n0,0,0\n", "src,dst,bytes"),
        ("notes.txt", "hello", "give run folders"),
        ("old.json", '{"schema": "earlybird.profile/99", "levels": {}}', "earlybird.profile/99"),
        ("listed.json", '{"schema": ["earlybird.profile/1"]}', "not an input of a report"),
    ],
)
def test_other_files_are_refused(tmp_path, name, content, says):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=says.replace(".", r"\.")) as caught:
        collect([tmp_path / name])
    assert "\n" not in str(caught.value)


SCHEMAS = {
    schema
    for path in Path(earlybird.__file__).parent.rglob("*.py")
    for schema in re.findall(r'"(earlybird\.[a-z-]+/[0-9]+)"', path.read_text())
}


@pytest.mark.parametrize("schema", sorted(SCHEMAS | {"earlybird.nothing/1", "earlybird.profile/99"}))
def test_a_refused_file_is_to_be_shown_exactly_if_show_prints_it(tmp_path, schema):
    path = tmp_path / "file.json"
    path.write_text(f'{{"schema": "{schema}"}}')
    with pytest.raises(InputError) as caught:
        collect([path])
    if "not an input of a report" not in str(caught.value):
        return  # damaged
    with pytest.raises(InputError) as shown:
        show(path)
    is_printed = "which this version does not print" not in str(shown.value)
    is_run = schema == "earlybird.run/1"  # of which the folder is shown
    assert str(caught.value).endswith(f"or print it with `earlybird show {path}`") == (
        is_printed and not is_run
    )


def test_node_counts_without_any_are_refused(tmp_path):
    path = tmp_path / "file.json"
    with pytest.raises(InputError, match="counts is missing or empty"):
        path.write_text('{"schema": "earlybird.node-counts/1", "model": "fair", "ranks": 4, "counts": []}')
        collect([path])


def test_a_missing_file_and_a_folder_without_a_run_are_refused(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        collect([tmp_path / "absent.json"])
    with pytest.raises(InputError, match="not a run folder"):
        collect([tmp_path])


def test_a_comparison_without_ranks_is_refused(tmp_path, make):
    value = make.comparison(make.pattern()).to_json()
    value["measured_s"], value["predicted_s"] = [], {model: [] for model in value["predicted_s"]}
    with pytest.raises(InputError, match="no rank"):
        collect([make.write_json(tmp_path / "comparison.json", value)])
