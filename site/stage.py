"""Collects the pages of the documentation site: the repository's own Markdown, as it is.

Pages keep their places, so that links between them hold. The README becomes the front page. Links
to files of the source lead to copies of them, and each public name has an entry in the reference.

    python site/stage.py build/site/pages
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import situate

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/**/*.md", "research/*.md")
FILES = ("docs/images/*", "research/images/**/*", "site/assets/*")
"""Pictures, and the style and the script that the site adds to its theme."""
FRONT = "index.md"
"""The README's name on the site."""


def stage(target: Path) -> None:
    """Write all pages and the files that they show or link to."""
    shutil.rmtree(target, ignore_errors=True)
    for path in _pages():
        _write(target / _place(path), _page(path, target))
    for path in (path for pattern in FILES for path in ROOT.glob(pattern) if path.is_file()):
        place = target / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    _write(target / "reference.md", _reference())


def _pages() -> list[Path]:
    return [path for pattern in PAGES for path in sorted(ROOT.glob(pattern))]


def _place(path: Path) -> Path:
    """The place of a page, from the root of the site."""
    place = path.relative_to(ROOT)
    return Path(FRONT) if place == Path("README.md") else place


def _page(path: Path, target: Path) -> str:
    """The text of a page, with links that hold on the site."""
    pages = {*_pages()}

    def link(match: re.Match[str]) -> str:
        linked = (path.parent / match[1]).resolve()
        if "://" in match[1] or not linked.exists() or linked.suffix in (".svg", ".png"):
            return match[0]
        if linked in pages and linked != ROOT / "README.md":
            return match[0]
        place = _place(linked) if linked in pages else _copy(linked, target)
        steps = "../" * (len(_place(path).parts) - 1)
        return f"]({steps}{place.as_posix()}{match[2] or ''})"

    return LINK.sub(link, path.read_text("utf-8"))


def _copy(linked: Path, target: Path) -> Path:
    """The place of a copy of a file, or of a list of a folder's files, as text."""
    place = linked.relative_to(ROOT)
    if linked.is_dir():
        names = sorted(p.name for p in linked.iterdir() if not p.name.startswith(("_", ".")))
        place, text = place / "files.txt", "\n".join(names) + "\n"
    else:
        place = place.with_name(f"{place.name}.txt")
        text = linked.read_text("utf-8", errors="replace")
    _write(target / place, text)
    return place


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def _reference() -> str:
    """An entry for each public name, by the module that defines it."""
    names = [name for name in situate.__all__ if name not in ("__version__", "zoo")]
    entries = [f"::: {_module(name)}.{name}\n" for name in names]
    return "# Reference\n\nThe public names of `situate`.\n\n" + "\n".join(entries)


def _module(name: str) -> str:
    """The module of a public name: that of its class or function, else that of its constant."""
    module = getattr(getattr(situate, name), "__module__", "")
    return module if module.startswith("situate") else f"situate.{situate._HOME[name]}"


if __name__ == "__main__":
    stage(Path(sys.argv[1]).resolve())
