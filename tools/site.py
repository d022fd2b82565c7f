"""Hooks of MkDocs: files outside docs/ become pages, other links become text, and pages load nothing."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
# The packages of the reference.
PACKAGES = {
    "data": "The data types and the only parser of their files; [files.md](../files.md) describes the files.",
    "models": "Formulas and statistics on numpy arrays; [models.md](../models.md) says which predicts what.",
    "predict": "Seconds per rank from a pattern, a profile and a layout.",
    "compare": "Measured times next to a reference or to predicted times.",
}
# Links to files above docs/, and to folders of raw results, which are no part of the site.
_OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:\.\./|(?=results/))([^)\s#]+)(#[^)\s]*)?\)")
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//[^>]*>|<link\b[^>]*rel="stylesheet"[^>]*//[^>]*>"""
)
_INTO_DOCS = re.compile(r"\]\(docs/([^)\s]+)\)")


def outside_pages() -> list[Path]:
    """The Markdown files outside of docs/ that the site shows."""
    return [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path in outside_pages():
        files.append(File.generated(config, path.name, content=path.read_text()))
    for package, title in PACKAGES.items():
        content = reference_page(package, title)
        files.append(File.generated(config, f"reference/{package}.md", content=content))
    return files


def reference_page(package: str, title: str) -> str:
    """The page of a package: a section per module, filled from the docstrings."""
    modules = sorted(path.stem for path in (ROOT / "src" / "earlybird" / package).glob("[!_]*.py"))
    sections = [f"## {module}\n\n::: earlybird.{package}.{module}\n" for module in modules]
    return "\n".join([f"# earlybird.{package}\n\n{title}\n", *sections])


def _inside(match: re.Match[str]) -> str:
    """A link out of the site: to the page that shows the file, else only the text and the path."""
    text, target, anchor = match[1], match[2], match[3] or ""
    if ROOT / target in outside_pages():
        return f"[{text}]({target}{anchor})"
    return text if text.strip("`") == target else f"{text} (`{target}`)"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if page.file.src_uri.startswith("reference/"):
        return markdown
    return _OUTSIDE.sub(_inside, _INTO_DOCS.sub(r"](\1)", markdown))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    loaded = _LOADED.search(output)
    if loaded:
        raise PluginError(f"{page.file.src_uri} loads something from elsewhere: {loaded[0]}")
    return output
