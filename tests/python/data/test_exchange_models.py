"""Each model of exchanges stands in one record; few source files name it."""

import ast
import re
from pathlib import Path

import pytest

import earlybird
from earlybird.data.errors import InputError
from earlybird.data.exchange_models import EVIDENCE, MODELS, exchange_model, model_order

SOURCE = Path(earlybird.__file__).parent
# Beside these a new model has its formula, its tests and a row in docs/models.md.
MAX_FILES = 4


def _texts(path: Path) -> list[str]:
    """The text literals of a Python file that are no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]


def test_few_source_files_name_a_model():
    """`fair` and `queue` are words of texts too: counted are literals that are a name, or have it as a name
    in them, after --model or in quotes. What a paper says of the models that it compares is its own."""
    files: dict[str, list[str]] = {name: [] for name in MODELS}
    is_named = re.compile(rf"(?:^|--model |model |[`'\"])({'|'.join(MODELS)})(?:$|[`'\" ,.;:])", re.M)
    papers = SOURCE / "papers"
    for path in sorted(path for path in SOURCE.rglob("*.py") if papers not in path.parents):
        if not is_named.search(path.read_text(encoding="utf-8")):
            continue  # not to parse it
        for name in {name for text in _texts(path) for name in is_named.findall(text)}:
            files[name].append(str(path.relative_to(SOURCE)))
    assert len(files["staircase"]) >= 2  # they are counted
    assert {name: named for name, named in files.items() if len(named) > MAX_FILES} == {}


def test_an_unknown_name_is_refused():
    for name in ("logp", "", "Fair", None, ["fair"]):
        with pytest.raises(InputError, match="choose one of staircase, fair, queue, max-rate, postal"):
            exchange_model(name)
    assert model_order("logp") == len(MODELS) > model_order("postal")


def test_every_kind_of_exchange_has_one_model_that_errs_least():
    least = [evidence for model in MODELS.values() for evidence in model.errs_least]
    assert sorted(least) == sorted(EVIDENCE)


def test_a_model_that_is_another_one_inside_nodes_names_a_model_of_its_own_there():
    for model in MODELS.values():
        assert not model.inside or not MODELS[model.inside].inside
