"""Hooks of MkDocs: files outside docs/ become pages, other links become text, and pages load nothing."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
# The packages of the reference.
PACKAGES = {
    "data": "The data types and the only parser of their files; [Files](../files/README.md) describes them.",
    "models": "Formulas and statistics on numpy arrays; [models.md](../models.md) says which predicts what.",
    "predict": "Seconds per rank from a pattern, a profile and a layout.",
    "compare": "Measured times next to a reference or to predicted times.",
}
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//[^>]*>|<link\b[^>]*rel="stylesheet"[^>]*//[^>]*>"""
)


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


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    source = page.file.src_uri
    if source.startswith("reference/"):
        return markdown
    # The pages outside of docs/ are written for the folder above it.
    folder = "" if ROOT / source in outside_pages() else posixpath.join("docs", posixpath.dirname(source))

    def in_site(match: re.Match[str]) -> str:
        """A link to a page of the site; of any other file only the text and the path."""
        text, target, anchor = match[1], match[2], match[3] or ""
        if re.match("[a-z]+:", target):
            return match[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        if files.get_file_from_path(path.removeprefix("docs/")) is None:
            return text if text.strip("`") == target else f"{text} (`{path}`)"
        here = posixpath.dirname(source) or "."
        return f"[{text}]({posixpath.relpath(path.removeprefix('docs/'), here)}{anchor})"

    return _LINK.sub(in_site, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    loaded = _LOADED.search(output)
    if loaded:
        raise PluginError(f"{page.file.src_uri} loads something from elsewhere: {loaded[0]}")
    return output
