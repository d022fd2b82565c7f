"""The page answers the five questions, sends no requests, and escapes text from files."""

import base64
import gzip
import html.parser
import json
import re

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs

from earlybird.data.comparison import Comparison
from earlybird.data.pattern import Pattern
from earlybird.data.profile import profile_from_json
from earlybird.data.run import Run, Sample
from earlybird.present.contents import contents
from earlybird.present.material import Material, collect
from earlybird.present.render import html as page

HOSTILE = '<script>alert("x")</script><img src=http://example.org/a.png>'


class Reader(html.parser.HTMLParser):
    """Collects the tags with attributes, the visible text and the figures of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text: list[str] = []
        self.scripts: list[tuple[str | None, str]] = []  # type and content
        self._inside = self._type = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside, self._type = tag, dict(attrs).get("type")

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts.append((self._type, data))
        elif self._inside != "style":
            self.text.append(data)

    def packed(self) -> list[str]:
        """The figures and the script of plotly, as text."""
        both = [data for kind, data in self.scripts if kind == "text/plain"]
        return [gzip.decompress(base64.b85decode(data)).decode() for data in both]

    def figures(self) -> dict:
        return json.loads(self.packed()[0])

    def visible(self) -> str:
        return " ".join(" ".join(self.text).split())


def machine(material: Material):
    return contents(material).chapters["machine"]


def read(material: Material) -> Reader:
    return Reader(page.render(material))


def test_all_chapters_are_there_in_order(everything):
    reader = read(collect(everything))
    assert [attrs["id"] for tag, attrs in reader.tags if tag == "section"] == [
        "answers", "exchange", "machine", "accuracy", "measured", "absent",
    ]  # fmt: skip
    visible = reader.visible()
    for text in ("MPICH 4.3.0", "Open MPI 5.0.8", "Example 9000", "oversubscribed", "--budget", "powersave"):
        assert text in visible
    assert set(reader.figures()) == {
        "time-intra_socket", "bandwidth-intra_socket", "contention-intra_socket",
        "matrix-0", "volumes-0", "waiting-0", "ranks-0", "scatter-0",
    }  # fmt: skip


def test_figures_are_valid_plotly_figures(everything):
    for figure in read(collect(everything)).figures().values():
        go.Figure(figure)
        assert figure["data"]


def test_every_figure_has_an_element_with_a_label(everything):
    reader = read(collect(everything))
    places = {attrs["data-figure"]: attrs for _, attrs in reader.tags if "data-figure" in attrs}
    assert set(places) == set(reader.figures())
    assert all(attrs["aria-label"] for attrs in places.values())


def test_the_page_loads_nothing(everything):
    reader = read(collect(everything))
    for tag, attrs in reader.tags:
        assert "src" not in attrs and "srcset" not in attrs, tag
        assert attrs.get("href", "#").startswith("#"), attrs
        assert tag not in ("link", "iframe", "object", "embed", "base")
    policy = next(attrs["content"] for _, attrs in reader.tags if "Content-Security-Policy" in attrs.values())
    assert policy.startswith("default-src 'none';") and "http" not in policy and "eval" not in policy
    styles = re.findall(r"<style>.*?</style>", page.render(Material()), re.DOTALL)
    assert not any("url(" in style or "@import" in style for style in styles)


def test_plotly_is_compressed_and_a_page_without_figures_does_not_have_it(everything):
    text = page.render(collect(everything))
    assert len(text) < 2e6
    assert Reader(text).packed()[1] == get_plotlyjs()
    assert len(page.render(Material())) < 50e3


def test_text_from_files_is_escaped(tmp_path, make):
    run = make.measured_run(tmp_path / "run", host=HOSTILE)
    lines = (run / "samples.ndjson").read_text().replace("openmpi", json.dumps(HOSTILE)[1:-1])
    (run / "samples.ndjson").write_text(lines)
    profile = make.profile_json("mpich")
    profile["levels"]["intra_socket"]["protocols"][1]["name"] = HOSTILE
    profile["forms"][0]["parameters"]["protocols"][1]["name"] = HOSTILE
    profile["warnings"] = [HOSTILE]
    comparison = make.comparison(make.pattern(), notes=[HOSTILE], layout=HOSTILE)
    renamed = Comparison(
        comparison.measured_s,
        {HOSTILE: comparison.measured_s},
        {HOSTILE: 0.0},
        {HOSTILE: 0.0},
        comparison.extra,
    )
    material = collect([run, make.write_json(tmp_path / "profile.json", profile)])
    text = page.render(Material(material.runs, material.profiles, comparisons=(renamed,)))
    reader = Reader(text)
    assert HOSTILE not in text
    assert not [tag for tag, _ in reader.tags if tag == "img"]
    assert len([tag for tag, _ in reader.tags if tag == "script"]) == 4
    assert HOSTILE in reader.visible()
    drawn = json.dumps(reader.figures())
    assert "&lt;script&gt;" in drawn and "<script" not in drawn and "<img" not in drawn


def test_chapters_without_data_show_the_command_that_produces_it():
    reader = read(Material())
    visible = reader.visible()
    for command in (
        "earlybird measure pingpong contention completion",
        "earlybird fit run",
        "earlybird predict",
        "earlybird replay",
        "earlybird advise pipeline",
    ):
        assert command in visible
    assert reader.figures() == {}


def test_a_profile_alone_draws_its_lines(make):
    profile = profile_from_json(
        {"schema": "earlybird.profile/1", "levels": make.profile_json("mpich")["levels"]}
    )
    reader = read(Material(profiles=(profile,)))
    assert set(reader.figures()) == {f"{kind}-intra_socket" for kind in ("time", "bandwidth", "contention")}
    assert "To measure messages, run earlybird measure" in reader.visible()


def test_protocols_show_whether_senders_wait_and_equal_lines_are_drawn_once(make):
    value = make.profile_json("mpich") | {"forms": []}
    protocols = value["levels"]["intra_socket"]["protocols"]
    last = protocols[-1] | {"min_bytes": 1 << 20, "sender_waits": True, "sender_waits_measured": True}
    before = machine(Material(profiles=[profile_from_json(value)]))
    protocols[-1] |= {"sender_waits": False, "sender_waits_measured": True}
    protocols.append(last)
    chapter = machine(Material(profiles=[profile_from_json(value)]))
    table, bandwidths = chapter.tables
    sender_waits = [row[table.header.index("sender waits")] for row in table.rows]
    assert sender_waits == ["no, assumed"] * (len(protocols) - 2) + ["no, measured", "yes, measured"]
    assert bandwidths.rows == before.tables[1].rows
    assert [len(figure.data) for figure in chapter.figures] == [len(figure.data) for figure in before.figures]


def test_a_bandwidth_bound_is_marked(make):
    value = make.profile_json("mpich")
    value["levels"]["intra_socket"]["protocols"][0] |= {"above_link_n": [1], "bounded_n": [2]}
    (*_, table) = machine(Material(profiles=(profile_from_json(value),))).tables
    bandwidth_cells = {(row[1], row[2].removesuffix(" *")): row[3] for row in table.rows}
    assert {key for key, figure in bandwidth_cells.items() if figure.endswith(" bound")} == {
        ("short", "1"),
        ("short", "2"),
    }


def test_runs_alone_show_contention_from_samples(tmp_path, make):
    figures = read(collect([make.measured_run(tmp_path / "run")])).figures()
    trace = next(t for t in figures["contention-intra_socket"]["data"] if t["name"] == "MPICH: measured")
    assert trace["x"] == [1, 2, 3, 4]
    assert np.allclose(trace["y"], [9.5e9, 15.6e9, 16.8e9, 17.1e9], rtol=0.15)


def test_a_prediction_without_a_measurement_is_marked_as_predicted(make):
    exchange = make.pattern()
    material = Material(predictions=(make.prediction(exchange), make.prediction(exchange, "postal")))
    reader = read(material)
    assert "takes, as predicted by the staircase model, 2 ms" in reader.visible()
    assert set(reader.figures()) == {"waiting-0", "ranks-0"}
    assert "To draw the communication matrix, add the pattern file" in reader.visible()


def test_a_pattern_alone_shows_its_matrix(make):
    reader = read(Material(patterns=(make.pattern(),)))
    assert set(reader.figures()) == {"matrix-0"}


def test_matrix_of_many_ranks_is_binned_and_keeps_every_byte(make):
    exchange = make.pattern(1000)
    figure = read(Material(patterns=(exchange,))).figures()["matrix-0"]
    cells = [z for row in figure["data"][0]["z"] for z in row if z is not None]
    assert len(figure["data"][0]["z"]) <= 64
    assert sum(10**z for z in cells) == pytest.approx(exchange.total_bytes, rel=1e-3)


def test_zero_byte_messages_are_drawn_and_an_empty_pattern_has_a_reason():
    zero = Pattern(np.array([0]), np.array([1]), np.array([0]))
    assert read(Material(patterns=(zero,))).figures()["matrix-0"]["data"][0]["z"] == [
        [None, 0.0],
        [None, None],
    ]
    empty = Pattern(np.array([]), np.array([]), np.array([]))
    assert "no messages" in read(Material(patterns=(empty,))).visible()


def test_slowest_rank_and_waiting_are_reported(make):
    exchange = make.pattern()
    comparison = make.comparison(exchange)
    measured = np.array([1e-3, 4e-3, 2e-3, 1e-3])
    material = Material(
        patterns=(exchange,),
        comparisons=(
            Comparison(
                measured, comparison.predicted_s, comparison.error, comparison.slowest_error, comparison.extra
            ),
        ),
    )
    chapters = contents(material).chapters
    cost, accuracy = chapters["exchange"], chapters["accuracy"]
    assert "4 ms, the time of rank 1, the slowest" in cost.sentence
    assert "wait 2.67 ms" in cost.sentence
    assert "staircase model is the most accurate" in accuracy.sentence
    assert [row[0] for row in accuracy.shown[0].rows] == ["staircase", "max-rate", "postal", "measured"]
    waiting = next(figure for figure in cost.figures if figure.id == "waiting-0")
    assert np.allclose(waiting.data[0]["y"], [3e-3, 0, 2e-3, 3e-3])


def test_the_error_is_shown_with_the_limits_of_the_measurement(tmp_path, make):
    def accuracy(load, oversubscribed):
        folder = tmp_path / f"{load}-{oversubscribed}"
        make.replay_run(folder, make.pattern())
        header = json.loads((folder / "run.json").read_text())
        header["machine"]["load"] = load
        (folder / "run.json").write_text(json.dumps(header))
        comparison = json.loads((folder / "comparison.json").read_text()) | {"oversubscribed": oversubscribed}
        (folder / "comparison.json").write_text(json.dumps(comparison))
        return contents(collect([folder])).chapters["accuracy"].sentence

    assert "relative error is 7.0 % (max-rate: 30 %" in accuracy(1.9, False)
    assert "error is 7.0 % (measured with more ranks than cores; max-rate: 30 %" in accuracy(1.9, True)
    assert "error is 7.0 % (measured at a load of 5.7; max-rate: 30 %" in accuracy(5.7, False)
    assert "(measured with more ranks than cores and at a load of 5.7; " in accuracy(5.7, True)


def test_wrong_data_is_a_red_light(tmp_path, make):
    run = make.measured_run(tmp_path / "run")
    lines = (run / "samples.ndjson").read_text().replace('"validated": true', '"validated": false', 1)
    (run / "samples.ndjson").write_text(lines)
    measured = contents(collect([run])).chapters["measured"]
    assert [light.state for light in measured.lights].count("bad") == 1
    assert any("Do not use these values" in remedy for remedy in measured.warnings)


def test_a_run_with_only_a_header_is_rendered(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_text('{"schema": "earlybird.run/1", "id": "x", "machine": {"host": "a box"}}')
    assert "no samples yet" in read(collect([folder])).visible()


def test_optional_parts_of_a_profile_may_be_invalid(make):
    value = make.profile_json("mpich")
    value["intervals"] = {"intra_socket": {"rendezvous": {"bandwidth_bytes_per_s": {"1": "wide"}}}}
    value["forms"] = [
        "text",
        {"form": "piecewise_postal", "what": {"operation": "pingpong", "level": "intra_socket"}},
    ]
    value["levels"]["intra_socket"]["held_out_error"] = None
    assert "contention-intra_socket" in read(Material(profiles=(profile_from_json(value),))).figures()


def test_several_exchanges_are_identified_by_what_differs(tmp_path, make):
    exchange = make.pattern()
    here = make.comparison(exchange, layout="1x1x4")
    there = make.comparison(exchange, layout="2x1x2")
    chapters = contents(Material(patterns=(exchange,), comparisons=(here, there))).chapters
    cost, accuracy = chapters["exchange"], chapters["accuracy"]
    assert "The exchange (layout 1x1x4) takes" in cost.sentence
    assert "The exchange (layout 2x1x2) takes" in cost.sentence
    assert [figure.id for figure in cost.figures].count("matrix-0") == 1
    assert "matrix-1" not in [figure.id for figure in cost.figures]
    assert [figure.title for figure in accuracy.figures] == [
        "Predicted against measured: layout 1x1x4",
        "Predicted against measured: layout 2x1x2",
    ]
    same = contents(Material(comparisons=(here, here))).chapters["exchange"]
    assert "(exchange #1)" in same.sentence and "(exchange #2)" in same.sentence


def test_a_measured_exchange_is_combined_with_its_prediction(tmp_path, make):
    exchange = make.pattern()
    replay = make.replay_run(tmp_path / "replay", exchange)
    (replay / "comparison.json").unlink()
    material = collect([replay, make.write_json(tmp_path / "p.json", make.prediction(exchange).to_json())])
    cost = contents(material).chapters["exchange"]
    ranks = next(figure for figure in cost.figures if figure.id == "ranks-0")
    assert [trace["name"] for trace in ranks.data] == ["measured", "staircase"]
    assert len([figure for figure in cost.figures if figure.id.startswith("ranks")]) == 1


def test_many_ranks_are_drawn_slowest_first(make):
    exchange = make.pattern(3000)
    comparison = make.comparison(exchange, 3000)
    figure = read(Material(comparisons=(comparison,))).figures()["ranks-0"]
    measured = next(trace for trace in figure["data"] if trace["name"] == "measured")
    assert measured["mode"] == "lines" and len(measured["y"]) == 1500
    assert measured["y"] == sorted(measured["y"], reverse=True)
    assert measured["hovertext"][0].startswith(f"rank {np.argmax(comparison.measured_s)},")
    assert (measured["y"][0], measured["y"][-1]) == (comparison.measured_s.max(), comparison.measured_s.min())
    go.Figure(figure)


def test_the_sentence_prefers_points_with_a_core_per_rank(make):
    profile = profile_from_json(make.profile_json("openmpi"))
    assert "at every N" not in machine(Material(profiles=(profile,))).sentence
    assert "4 processes receiving at once" in machine(Material(profiles=(profile,))).sentence
    assert "(with more ranks than cores)" in machine(Material(profiles=(profile,))).sentence
    both = (profile, profile_from_json(make.profile_json("mpich")))
    sentence = machine(Material(profiles=both)).sentence
    assert "With MPICH, 2 processes" in sentence and "8.8 % less" in sentence


def test_the_shading_is_the_spread_of_launches_not_of_iterations(tmp_path):
    run = Run.create(tmp_path / "run", machine={}, command=["measure"], seed=1)
    config = {"mpi": "mpich", "level": "intra_socket", "size_bytes": 1024, "buffers": "vary"}
    for launch, median_s in enumerate((2e-6, 3e-6, 5e-6)):
        run.append_launch({"id": str(launch), "flavour": "mpich"})
        times_s = median_s * np.array([0.1, 0.1, 1, 9, 9])
        run.append_samples([Sample("pingpong", "half_round_trip", config, str(launch), times_s)])
    material = collect([run.path])
    figure = read(material).figures()["time-intra_socket"]
    low, high = (trace["y"] for trace in figure["data"][:2])
    assert (low, high) == ([2e-6], [5e-6])
    chapter = machine(material)
    assert "its interval over launches" in chapter.figures[0].caption
    assert chapter.tables[0].rows[0][3] == "3 us (2 us .. 5 us)"
    assert "3 of 3 samples converged" in contents(material).chapters["measured"].sentence


def test_a_warning_shows_the_display_name_of_its_level(make):
    value = make.profile_json("mpich") | {"warnings": ["intra_socket: one launch only", "5 of 24 noisy"]}
    lines = " ".join(machine(Material(profiles=(profile_from_json(value),))).warnings)
    assert "MPICH, same socket: one launch only" in lines and "MPICH: 5 of 24 noisy" in lines
