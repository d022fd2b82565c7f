"""The page in headless Chromium: no script error, no request, every figure drawn."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from earlybird.present.material import collect
from earlybird.present.render import html as page
from tests.recordings import halo, on_disk

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="no chromium, chromium-browser or google-chrome on PATH"),
]
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--no-pings",
    "--disable-dev-shm-usage", "--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND",
    "--virtual-time-budget=10000",
)  # fmt: skip


def open_page(path: Path, folder: Path, *flags: str) -> tuple[str, list[str]]:
    """The document after its scripts ran, and the addresses of all requests other than the file itself."""
    log = folder / "net.json"
    command = [BROWSER, *QUIET, *flags, f"--user-data-dir={folder / 'browser'}", f"--log-net-log={log}",
               "--dump-dom", path.as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    # The browser sends requests of its own; those of the page carry the site of the page.
    lines = [line for line in log.read_text(errors="replace").splitlines() if "{site=file://" in line]
    requests = [
        address for line in lines for address in re.findall(r'"url":"((?!file:|data:|blob:)[^"]+)"', line)
    ]
    return done.stdout, requests


def write(everything, tmp_path) -> Path:
    page.write_page(collect(everything), tmp_path / "report.html")
    return tmp_path / "report.html"


def test_every_figure_is_drawn_without_errors_or_requests(everything, tmp_path):
    path = write(everything, tmp_path)
    document, requests = open_page(path, tmp_path)
    root = re.search(r"<html[^>]*>", document)[0]
    assert "data-errors" not in root and "data-violations" not in root
    assert requests == []
    places = re.findall(r'<div class="plot[^>]*data-figure="[^"]+"[^>]*>', document)
    assert len(places) == path.read_text(encoding="utf-8").count('data-figure="') == 8
    assert all('data-drawn="yes"' in place for place in places)
    assert len(re.findall(r'<svg class="main-svg"', document)) >= len(places)
    assert len(re.findall(r'class="(?:trace |hm|point)', document)) > 30


def test_the_theme_button_redraws_every_figure(everything, tmp_path):
    """In a browser that prefers dark pages: the button leaves it for the light theme."""
    path = write(everything, tmp_path)
    click = '<script>document.getElementById("theme").click()</script></body>'
    path.write_text(path.read_text(encoding="utf-8").replace("</body>", click), encoding="utf-8")
    document, _ = open_page(path, tmp_path, "--force-dark-mode", "--blink-settings=preferredColorScheme=0")
    root = re.search(r"<html[^>]*>", document)[0]
    assert 'data-theme="light"' in root and "data-errors" not in root
    assert document.count('data-drawn="yes"') == 8
    assert "rgb(0, 114, 178)" in document and "rgb(86, 180, 233)" not in document


def test_a_browser_that_cannot_decompress_says_why_there_are_no_figures(everything, tmp_path):
    path = write(everything, tmp_path)
    old = "<script>delete window.DecompressionStream</script><title>"
    path.write_text(path.read_text(encoding="utf-8").replace("<title>", old), encoding="utf-8")
    document, _ = open_page(path, tmp_path)
    assert "data-errors" not in re.search(r"<html[^>]*>", document)[0]
    assert re.search(r'<p[^>]*id="no-figures">No figure is drawn because', document)
    assert 'class="plot"' not in document and "<table>" in document


def test_a_recording_is_drawn_in_every_order_of_its_ranks(tmp_path):
    folder = on_disk(tmp_path / "rec", 27, halo(3), host=lambda rank: f"n{rank // 9}")
    path = tmp_path / "report.html"
    page.write_page(collect([folder]), path)
    script = choosing("order of ranks", "by community")
    path.write_text(path.read_text(encoding="utf-8").replace("</body>", script), encoding="utf-8")
    document, requests = open_page(path, tmp_path)
    assert "data-errors" not in re.search(r"<html[^>]*>", document)[0] and requests == []
    drawn = re.findall(r'data-figure="([^"]+)"[^>]*data-drawn="yes"', document)
    assert sorted(drawn) == [
        "recording-calls-0", "recording-matrix-0-community-bytes", "recording-phases-0", "recording-ranks-0",
        "recording-sizes-0",
    ]  # fmt: skip


def choosing(name: str, value: str) -> str:
    """A script that selects a value of a selector, as a reader does."""
    return f"""<script>
  const select = document.querySelector('select[name="{name}"]');
  select.value = "{value}";
  select.dispatchEvent(new Event("change", {{ bubbles: true }}));
</script></body>"""


def test_a_selector_shows_matching_figures_and_updates_the_other_selectors(tmp_path, make):
    run = make.pipeline_run(tmp_path / "run", [(2, 2, 1e-7), (2, 16, 1e-7), (4, 4, 0.0), (4, 8, 0.0)])
    path = write([run], tmp_path)
    first = """<script>
  document.documentElement.dataset.first = document.querySelector('select[name="threads"]').value;
</script></body>"""
    text = path.read_text(encoding="utf-8").replace("</body>", first)
    path.write_text(text.replace("</body>", choosing("threads", "4")), encoding="utf-8")
    document, _ = open_page(path, tmp_path)
    root = re.search(r"<html[^>]*>", document)[0]
    assert "data-errors" not in root and 'data-first="2"' in root
    figures = re.findall(r'<figure[^>]*data-choice="([^"]*)"([^>]*)>(.*?)</figure>', document, re.DOTALL)
    shown = [(choice, inside) for choice, flags, inside in figures if "hidden" not in flags]
    # Times and speed-ups of one setting, and the map over partitions.
    assert len(figures) == 10 and len(shown) == 3
    assert all("&quot;threads&quot;: &quot;4&quot;" in choice for choice, _ in shown)
    assert all('data-drawn="yes"' in inside for _, inside in shown)


def test_collectives_and_advice_are_drawn_and_selected_without_errors_or_requests(tmp_path, make):
    advice = make.write_json(tmp_path / "advice.json", make.advice().to_json())
    path = write([make.collective_run(tmp_path / "run"), advice], tmp_path)
    path.write_text(
        path.read_text(encoding="utf-8").replace("</body>", choosing("mapped by", "node")), encoding="utf-8"
    )
    document, requests = open_page(path, tmp_path)
    root = re.search(r"<html[^>]*>", document)[0]
    assert "data-errors" not in root and "data-violations" not in root and requests == []
    figures = re.findall(r'<figure[^>]*data-choice="([^"]*)"([^>]*)>(.*?)</figure>', document, re.DOTALL)
    shown = [(choice, inside) for choice, flags, inside in figures if "hidden" not in flags]
    kinds = {re.search('data-figure="collective-([a-z]+)', inside)[1] for _, inside in shown}
    assert kinds == {"ranks", "size", "mapping", "best"} and len(shown) == 4
    assert all("mapped by" not in choice or "&quot;node&quot;" in choice for choice, _ in shown)
    assert all('data-drawn="yes"' in inside for _, inside in shown)
    assert re.search('data-figure="advice-0"[^>]*data-drawn="yes"', document)


PHONES = (390, 360)  # pixels, the widths of common phones
# The browser has a least window width, a frame has none.
FRAME = '<iframe src="{page}" width="{width}" height="800"></iframe>'
MEASURE = """<!doctype html>{frames}
<script>
  const measure = (frame) => {{
    const view = frame.contentDocument;
    const right = (element) => element.getBoundingClientRect().right;
    const plots = Array.from(view.querySelectorAll("figure:not([hidden]) .plot"));
    const texts = plots.map((plot) => Array.from(plot.querySelectorAll(".legendtext")));
    const titles = plots.map((plot) => plot.querySelector(".xtitle"));
    const legends = plots.map((plot) => plot.querySelector(".legend"));
    return {{
      width: view.documentElement.scrollWidth,
      undrawn: plots.filter((plot) => plot.dataset.drawn !== "yes").map((plot) => plot.textContent),
      names: texts.flat().length,
      cut: plots.flatMap((plot, k) => texts[k].filter((text) => right(text) > right(plot)).map((text) => text.textContent)),
      covered: plots.filter((plot, k) => legends[k] &&
        legends[k].getBoundingClientRect().top < titles[k].getBoundingClientRect().bottom).map((plot) => plot.id),
      scrolled: legends.filter((legend) => legend && legend.querySelector(".scrollbar").getAttribute("height") > 0).length,
    }};
  }};
  setTimeout(() => {{
    document.body.dataset.measured = JSON.stringify(Array.from(document.querySelectorAll("iframe"), measure));
  }}, 8000);
</script>"""  # noqa: E501


def test_on_a_phone_nothing_is_wider_than_the_page_and_no_legend_is_cut(tmp_path, make):
    long_name = "a-run-on-the-cluster-with-a-name-that-is-longer-than-a-phone-is-wide"
    runs = [make.measured_run(tmp_path / name / long_name) for name in ("first", "second")]
    advice = make.write_json(tmp_path / "advice.json", make.advice().to_json())
    pipelines = make.pipeline_run(tmp_path / "pipelines", [(2, 2, 1e-7), (2, 16, 1e-7)])
    replay = make.replay_run(tmp_path / "replay", make.pattern())
    path = write([*runs, advice, pipelines, make.collective_run(tmp_path / "collectives"), replay], tmp_path)
    frame = tmp_path / "frame.html"
    frames = "".join(FRAME.format(page=path.as_uri(), width=width) for width in PHONES)
    frame.write_text(MEASURE.format(frames=frames), encoding="utf-8")
    flags = ("--allow-file-access-from-files", "--disable-web-security", "--hide-scrollbars")
    document, _ = open_page(frame, tmp_path, *flags)
    measured = json.loads(html.unescape(re.search('data-measured="([^"]*)"', document)[1]))
    assert [one["width"] for one in measured] == list(PHONES)
    for one in measured:
        assert one["undrawn"] == [] and one["names"] > 20
        assert (one["cut"], one["covered"], one["scrolled"]) == ([], [], 0)


BAD = '<img src="http://earlybird.invalid/a.png"><script>undefinedFunction()</script></body>'


def test_script_errors_and_blocked_requests_are_recorded(tmp_path, make):
    path = write([make.measured_run(tmp_path / "run")], tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace("</body>", BAD), encoding="utf-8")
    document, requests = open_page(path, tmp_path)
    root = re.search(r"<html[^>]*>", document)[0]
    assert "undefinedFunction" in root
    assert "img-src http://earlybird.invalid/a.png" in root
    assert requests == []


def test_a_request_without_a_policy_is_detected(tmp_path):
    path = tmp_path / "bad.html"
    path.write_text("<html><body>" + BAD + "</html>", encoding="utf-8")
    assert "http://earlybird.invalid/a.png" in open_page(path, tmp_path)[1]
