"""A command never writes a file that it also reads, or one file twice."""

import json

import pytest


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    level = {"protocols": [{"latency_s": 1e-6, "bandwidth_bytes_per_s": {"1": 1e9}}]}
    profile = {
        "schema": "earlybird.profile/1",
        "id": "p",
        "levels": {"intra_socket": level, "inter_node": level},
    }
    (tmp_path / "p.json").write_text(json.dumps(profile))
    (tmp_path / "in.csv").write_text("src,dst,bytes\n0,1,1000\n2,3,1000\n")
    (tmp_path / "l.csv").write_text("rank,node,socket\n0,0,0\n1,1,0\n")
    (tmp_path / "m.graph").write_text("4 3\n2\n1 3\n2 4\n3\n")
    (tmp_path / "link.csv").symlink_to("in.csv")
    return {path: path.read_text() for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "advise layout in.csv --profile p.json --layout 2x1x2 -o in.csv",
            "-o is in.csv, which is also read",
        ),
        (
            "advise layout link.csv --profile p.json --layout 2x1x2 -o in.csv",
            "-o is in.csv, which is also read",
        ),
        ("export p.json --to loggps -o p.json", "-o is p.json, which is also read"),
        ("export l.csv --to mpich --hosts a,b -o l.csv", "-o is l.csv, which is also read"),
        ("report p.json -o ./p.json", "-o is p.json, which is also read"),
        (
            "pattern mesh m.graph --parts 2 -o x.csv --partition-out m.graph",
            "--partition-out is m.graph, which is also read",
        ),
        ("pattern mesh m.graph --parts 2 -o b.csv --partition-out b.csv", "are both b.csv; give two files"),
    ],
)
def test_it_is_refused_and_nothing_is_written(in_process, refused, files, words, sentence):
    refused(in_process(*words.split(), check=False), sentence)
    assert all(path.read_text() == text for path, text in files.items())
    assert not next(iter(files)).with_name("b.csv").exists()


@pytest.mark.parametrize(
    "words",
    [
        "show -",
        "predict - --profile p.json --layout 1x1x4",
        "report -",
        "pattern mesh m.graph --parts 2 -o -",
        "export p.json --to loggps -o -",
        "measure pingpong -o -",
        "fit --output=- run",
    ],
)
def test_a_dash_is_no_file(in_process, refused, files, words):
    before = sorted(next(iter(files)).parent.iterdir())
    refused(in_process(*words.split(), check=False), "- is neither stdin nor stdout; give /dev/stdin")
    assert sorted(next(iter(files)).parent.iterdir()) == before
