"""The first screen: a line per answer, the advice first, and one line that says how far to trust them."""

import re
from dataclasses import replace

import numpy as np
import pytest

from earlybird.data.pattern import save_pattern
from earlybird.data.run import Sample
from earlybird.present.contents import contents
from earlybird.present.material import Material, MeasuredRun, collect
from earlybird.present.render import html as page
from earlybird.present.render import text as terminal

PIPELINES = [(2, 2, 1e-7), (4, 4, 0.0)]


@pytest.fixture
def complete(everything, make, tmp_path) -> Material:
    """Data for every chapter."""
    advice = make.write_json(tmp_path / "advice.json", make.advice().to_json())
    pipelines = make.pipeline_run(tmp_path / "pipelines", PIPELINES)
    return collect([*everything, advice, pipelines, make.collective_run(tmp_path / "collectives")])


def test_the_answers_are_in_the_order_of_their_use(complete):
    report = contents(complete)
    starts = ("A buffer that threads fill", "Exchange", "Sending 1 MiB", "Broadcast", "Reduce", "Prediction",
              "Message with MPICH", "Message with Open MPI")  # fmt: skip
    assert all(answer.what.startswith(start) for answer, start in zip(report.answers, starts, strict=True))
    assert all(answer.number and answer.sentence.endswith(".") for answer in report.answers)
    assert all(answer.do for answer in report.answers[:6])
    assert list(report.chapters) == [
        "advice", "exchange", "machine", "pipelines", "collectives", "accuracy", "measured",
    ]  # fmt: skip


def test_the_answers_agree_with_their_chapters(complete):
    report = contents(complete)
    of = {answer.what: answer for answer in report.answers}
    assert of["Exchange"].number in report.chapters["exchange"].sentence
    assert of["Prediction"].number in report.chapters["accuracy"].sentence
    assert of["Message with MPICH, same socket"].number in report.chapters["machine"].sentence
    pipeline = next(answer for what, answer in of.items() if what.startswith("Sending"))
    assert pipeline.number == "speed-up 3.00" and "speed-up 3.00" in report.chapters["pipelines"].sentence
    assert "--threads 2 --size 1MiB --gamma 100000us/MB --level intra_socket --profile" in pipeline.do
    broadcast = next(answer for what, answer in of.items() if what.startswith("Broadcast"))
    assert broadcast.number in report.chapters["collectives"].sentence
    assert broadcast.do == "nothing to do" and "the MPI cannot select it" in broadcast.sentence


def test_page_and_terminal_begin_with_the_answers(complete):
    html, text = page.render(complete), terminal.render(complete)
    body = html[html.index("<body>") :]
    for shown in (body, text):
        places = [shown.index(part) for part in ("Answers", "64 MiB, 8 threads", "samples converged")]
        assert places == sorted(places)
        assert places[-1] < shown.index("Where a point was measured")
    assert body.index('id="answers"') < body.index("<nav") < body.index('id="advice"')


def exchange_samples(launches) -> tuple[Sample, ...]:
    """An exchange of two ranks; `launches` are the times of rank 1, the slowest."""
    config = {"mpi": "mpich", "layout": "1x1x2"}
    return tuple(
        Sample("exchange", "completion", config, str(k), np.full(3, time_s), rank_times_s=times_s)
        for k, time_s in enumerate(launches)
        for times_s in [np.tile([1e-4, time_s], (3, 1))]
    )


def test_the_cost_of_an_exchange_has_the_interval_of_its_slowest_rank():
    launches = tuple({"id": str(k), "flavour": "mpich"} for k in range(3))
    runs = (MeasuredRun("run", {}, launches, exchange_samples((1e-3, 2e-3, 4e-3))),)
    (answer,) = contents(Material(runs=runs)).answers
    assert (answer.number, answer.interval) == ("2 ms", "1 ms .. 4 ms")
    assert answer.do.startswith("reduce what rank 1 receives: fewer or smaller messages")


def test_warnings_are_counted_in_one_line_and_unfold(everything):
    material = collect(everything)
    report, html = contents(material), page.render(material)
    assert report.trust_line.startswith(
        "54 of 56 samples converged, 2 noisy, 4 oversubscribed (more ranks than "
    )
    assert report.trust_line.endswith("cores). 5 warnings.")
    assert len(report.warnings) == len(set(report.warnings)) == 5
    folded = re.search(r'<details class="trust"><summary>(.*?)</summary>(.*?)</details>', html, re.DOTALL)
    assert folded[1] == report.trust_line and folded[2].count("<li>") == 5
    for warning in ("set the frequency governor", "which no model describes", "scheduler&#39;s switches"):
        assert warning in folded[2] and html.count(warning) == 1


def test_wrong_data_are_reported_before_everything_else_about_trust(tmp_path, make):
    run = make.measured_run(tmp_path / "run")
    lines = (run / "samples.ndjson").read_text().replace('"validated": true', '"validated": false', 1)
    (run / "samples.ndjson").write_text(lines)
    report = contents(collect([run]))
    assert report.trust.startswith("Received data were wrong in 1 sample. ")
    assert "Do not use these values" in report.warnings[0]


def test_counts_are_of_samples_and_the_same_everywhere(everything):
    report = contents(collect(everything))
    assert report.trust.removesuffix(".") in report.chapters["measured"].sentence
    (table,) = report.chapters["measured"].brief
    counted = [sum(int(row[k]) for row in table.rows) for k in (1, 2, 3)]
    assert counted == [56, 2, 4]


def test_commands_have_the_files_of_the_report(everything, make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = contents(collect(everything))
    prediction = next(answer for answer in report.answers if answer.what == "Prediction")
    assert prediction.do == (
        "predict with `earlybird predict exchange replay/pattern.npz --profile mpich.json --layout 1x1x4 "
        "--model staircase`"
    )
    commands = [absent.command for absent in report.absent]
    assert any("--gamma 100us/MB --profile mpich.json" in command for command in commands)
    save_pattern(make.pattern(), tmp_path / "mesh.csv")
    absent = contents(collect([tmp_path / "mesh.csv", tmp_path / "mpich.json"])).absent
    assert "earlybird replay mesh.csv --profile mpich.json --layout 1x1x4 -o replay" in {
        one.command for one in absent
    }
    absent = contents(collect([everything[0]])).absent
    assert "earlybird fit run -o profile.json" in {one.command for one in absent}


def test_a_chapter_without_data_is_one_line_with_its_command(tmp_path, make):
    material = collect([make.pipeline_run(tmp_path / "run", PIPELINES)])
    report, html = contents(material), page.render(material)
    assert list(report.chapters) == ["pipelines", "measured"]
    assert "How far off was the prediction?" in {absent.question for absent in report.absent}
    assert html.index('id="measured"') < html.index('id="absent"')
    assert html.count("How far off was the prediction?") == 1
    assert "Not in this report" in terminal.render(material)


def test_titles_are_unique_and_files_have_the_names_that_the_user_gave(tmp_path, make):
    inputs = []
    for folder in (tmp_path / "before", tmp_path / "after"):
        folder.mkdir()
        inputs += [
            make.measured_run(folder / "run"),
            make.write_json(folder / "profile.json", make.profile_json("mpich")),
            make.replay_run(folder / "replay", make.pattern()),
            make.pipeline_run(folder / "pipelines", PIPELINES),
            make.collective_run(folder / "collectives"),
            make.write_json(folder / "advice.json", make.advice().to_json()),
        ]
    material = collect(inputs)
    report = contents(material)
    found = re.findall(r"<(h[1-3]|summary)>(.*?)</\1>", page.render(material), re.DOTALL)
    titles = [title for _, title in found]
    assert len(titles) > 80 and [title for title in titles if titles.count(title) > 1] == []
    whats = [answer.what for answer in report.answers]
    assert len(whats) == len(set(whats))
    assert {"Exchange before/replay", "Exchange after/replay", "Prediction after/replay"} <= set(whats)
    text = " ".join([*titles, *whats, *report.chapters["machine"].warnings, terminal.render(material)])
    for name in ("file before/advice.json", "MPICH (after/profile.json)", "MPICH (before/run)"):
        assert name in text
    assert "profile-mpich" not in text


def test_many_answers_of_a_chapter_are_counted(tmp_path, make):
    operations = ("bcast", "reduce", "allreduce", "gather", "scatter")
    report = contents(collect([make.collective_run(tmp_path / "run", operations, ("core",))]))
    *first, last = report.answers
    assert len(first) == 3 and last.what == "Which algorithm should a collective use?"
    assert last.sentence == "2 more answers in the chapter on this question."


def test_means_are_named_in_every_caption_and_after_the_answers(complete):
    report, means = contents(complete), contents(replace(complete, statistic="mean"))

    def captions(of_report):
        chapters = [of_report.chapters[id] for id in ("machine", "pipelines", "collectives")]
        return " ".join(figure.caption for chapter in chapters for figure in chapter.figures)

    assert "edian over iterations" in captions(report) and "ean over the iterations" not in captions(report)
    assert "Mean" not in report.trust
    assert "ean over the iterations" in captions(means) and "edian over iterations" not in captions(means)
    assert "Measured times are means over the iterations of all launches" in means.trust
