"""The page: one HTML file that works offline, from the chapters, a template and the script of plotly."""

import base64
import gzip
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from earlybird import __version__
from earlybird.data import files
from earlybird.data.plain_text import plain, plain_line
from earlybird.present.contents import MoreChapters, contents, no_chapters
from earlybird.present.core.axes import PALETTE
from earlybird.present.core.parts import Chapter, Figure
from earlybird.present.material import Material

TEMPLATES = Path(__file__).parent / "templates"
FAINT = 0.22  # opacity of shading and raw samples


def write_page(material: Material, path: str | Path, more: MoreChapters = no_chapters) -> None:
    """Write the page to `path` atomically; `more` makes further chapters."""
    files.write_text(path, render(material, more))


def render(material: Material, more: MoreChapters = no_chapters) -> str:
    """Return the page as HTML: style, scripts and figures inlined, all text from files escaped."""
    import jinja2  # imported late: slow

    report = contents(material, more)
    figures = _figures(report.chapters.values())
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
    )
    return environment.get_template("page.html").render(
        title=_title(material),
        report=report,
        figures=_packed(json.dumps(figures, separators=(",", ":"))),
        palette=PALETTE,
        faint=_faint,
        choosers=_choosers,
        chosen=_chosen,
        style=_text("page.css"),
        watch_script=_text("watch.js"),
        plotly_script=_packed_plotly() if figures else "",
        page_script=_text("page.js"),
        version=__version__,
    )


def _shown(value: Any) -> Any:
    """Return the output of an expression of the template: plain text. Finished parts of the page are kept."""
    return plain(value) if type(value) is str else value


def _packed(text: str) -> str:
    """Return `text` compressed, in base 85 (6 % shorter than base 64); the script of the page inflates it."""
    return base64.b85encode(gzip.compress(text.encode(), mtime=0)).decode()


@cache
def _packed_plotly() -> str:
    """Return the script of plotly, which is the same in every page; packing it takes half a second."""
    from plotly.offline import get_plotlyjs  # imported late: slow

    return _packed(get_plotlyjs())


def _title(material: Material) -> str:
    hosts = {str(run.machine["host"]): None for run in material.runs if run.machine.get("host")}
    return "MPI communication" + (f" on {', '.join(hosts)}" if hosts else "")


def _figures(all_chapters: Iterable[Chapter]) -> dict[str, dict[str, Any]]:
    """Return the plotly figures that can be drawn, by their id."""
    return {
        figure.id: _plain_texts({"data": figure.data, "layout": figure.layout})
        for chapter in all_chapters
        for figure in chapter.figures
        if not figure.absence
    }


def _plain_texts(value: Any) -> Any:
    """Return a part of a figure with plain text."""
    if isinstance(value, str):
        return plain_line(value)
    if isinstance(value, Mapping):
        return {_plain_texts(key): _plain_texts(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # of numpy
        value = value.tolist()
    return [_plain_texts(item) for item in value] if isinstance(value, list | tuple) else value


def _choosers(chapter: Chapter) -> dict[str, list[str]]:
    """Return the selectors of a chapter that have more than one value."""
    return {name: list(values) for name, values in chapter.choices.items() if len(values) > 1}


def _chosen(figure: Figure, selectors: Mapping[str, object]) -> dict[str, str]:
    """Return the values that the selectors of its chapter must show for a figure to be visible."""
    return {plain(name): plain(value) for name, value in figure.choice.items() if name in selectors}


def _faint(hex_color: str) -> str:
    red, green, blue = (int(hex_color[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},{FAINT})"


def _text(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
