"""The documents: their links lead somewhere and they leave nothing out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import situate
from situate.data.cluster import Cluster
from situate.results.plan import Plan
from situate.solvers import METHODS

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


def anchors(page: Path) -> set[str]:
    """Anchors of a page: GitHub's for its headings, and those that it sets itself."""
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


@pytest.mark.parametrize("name", situate.__all__)
def test_every_public_name_is_on_the_page_on_python(name):
    text = (ROOT / "docs" / "python.md").read_text()
    assert re.search(rf"\b{name}\b", text)


def program(page: str) -> dict[str, Any]:
    """The names that the Python code of a page leaves, run as one program."""
    names: dict[str, Any] = {}
    text = (ROOT / "docs" / page).read_text()
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), names)
    return names


def test_the_program_of_the_page_on_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = program("python.md")
    assert names["result"].optimal
    assert names["path"].compute == pytest.approx(0.015)


def test_the_program_of_the_page_on_own_methods_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = program("own-methods.md")
    assert names["climbed"].value < names["climbed"].samples[0]
    assert names["balanced"].measured < names["balanced"].samples[0]
    assert 0 < names["chance"] <= 1
    assert len(capsys.readouterr().out.splitlines()) == 9


def test_the_program_of_the_page_on_studies_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    problem = situate.Problem(situate.zoo.load("inception_v3"), situate.Cluster.preset("k80-4"))
    learning = situate.Learning(study="post.study")
    result = situate.solve(problem, "post", evaluations=24, learning=learning)
    names = program("study-format.md")
    assert names["study"].measurements.seconds[names["best"]] == result.value
    assert names["logits"].shape == (problem.d, problem.n)
    last, of_op = names["study"].placement(23), names["of_op"]
    first = np.unique(of_op, return_index=True)[1]
    assert (last == last[first][of_op]).all()


def test_the_readmes_cluster_is_one(tmp_path):
    text = (ROOT / "README.md").read_text()
    block = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert block is not None
    (tmp_path / "two.toml").write_text(block[1])
    assert Cluster.read(tmp_path / "two.toml").names == ["big", "small"]
