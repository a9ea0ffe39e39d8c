"""The documents: their links lead somewhere and they leave nothing out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from situate.cluster import Cluster
from situate.plan import Plan
from situate.solvers import METHODS

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


def anchors(page: Path) -> set[str]:
    """What GitHub calls the headings of a page, and the anchors that it sets itself."""
    text = page.read_text()
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE
    )
    slugs = (re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)
    return {*slugs, *re.findall(r'<a id="([^"]+)">', text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_headings(page):
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text())
    targets = [((page.parent / file) if file else page, anchor) for file, anchor in links]
    assert [anchor for target, anchor in targets if anchor not in anchors(target)] == []


def test_every_field_of_a_plan_is_described():
    text = (ROOT / "docs" / "plan-format.md").read_text()
    assert [name for name in Plan.__struct_fields__ if f"`{name}`" not in text] == []


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_page_that_the_index_names(method):
    assert (ROOT / "docs" / "methods" / f"{method}.md").read_text().startswith(f"# {method}\n")
    assert f"[{method}]({method}.md)" in (ROOT / "docs" / "methods" / "README.md").read_text()


def test_the_program_of_the_page_on_own_methods_runs(tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs" / "own-methods.md").read_text()
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), names)
    assert names["climbed"].value < names["climbed"].samples[0]
    assert names["balanced"].measured < names["balanced"].samples[0]
    assert len(capsys.readouterr().out.splitlines()) == 6


def test_the_readmes_cluster_is_one(tmp_path):
    text = (ROOT / "README.md").read_text()
    block = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert block is not None
    (tmp_path / "two.toml").write_text(block[1])
    assert Cluster.read(tmp_path / "two.toml").names == ["big", "small"]
