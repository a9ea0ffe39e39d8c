"""The documents: their links lead somewhere and they leave nothing out."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import situate
from situate.cli import app
from situate.data.cluster import Cluster
from situate.errors import SituateError
from situate.results.plan import Plan
from situate.solvers import METHODS

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "research").glob("*.md")]
)


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


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_page_of_a_method_begins_with_a_link_to_the_file_that_holds_it(method):
    page = ROOT / "docs" / "methods" / f"{method.name}.md"
    _, code, *_ = page.read_text().split("\n\n")
    linked = [page.parent / link for link in re.findall(r"\]\(([^)#]+)\)", code)]
    holder = ROOT / "src/situate/solvers" / method.module.partition(":")[0].replace(".", "/")
    assert code.startswith("Code: [")
    assert [link for link in linked if not link.is_file()] == []
    assert {holder, holder.with_suffix(".py")} & {
        whole for link in linked for whole in (link.resolve(), link.resolve().parent)
    }


def bold(page: Path) -> list[str]:
    """Bold words of a page that begin in lower case: its terms. Headings, names and code do not.

    Bold in a table is a figure that stands out.
    """
    code = r"```.*?```|`[^`\n]*`"
    prose = re.sub(code, "`", page.read_text(), flags=re.DOTALL)
    lines = (
        line for line in prose.splitlines() if not line.startswith("|")
    )  # figures that stand out
    return re.findall(r"\*\*([a-z][^*]*)\*\*", "\n".join(lines))


GLOSSARY = bold(ROOT / "docs" / "glossary.md")


def test_the_glossary_explains_each_term_once_and_briefly():
    text = (ROOT / "docs" / "glossary.md").read_text()
    entries = re.findall(r"^- \*\*(.+)\*\*: (.+(?:\n  .+)*)", text, re.MULTILINE)
    assert [term for term, _ in entries] == GLOSSARY
    assert len(GLOSSARY) == len(set(GLOSSARY))
    assert [term for term, text in entries if text.count("\n") > 2] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_term_in_bold_is_in_the_glossary(page):
    assert [term for term in bold(page) if " ".join(term.split()) not in GLOSSARY] == []


PUBLIC = (ROOT / "docs" / "python.md").read_text()
EXAMPLES = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| `(.+)` \|$", PUBLIC, re.MULTILINE))
KINDS = {name: getattr(situate, name) for name in situate.__all__}
ERRORS = [n for n, k in KINDS.items() if isinstance(k, type) and issubclass(k, SituateError)]
NEED_TORCH = {"capture", "compile"}


def commands(page: Path) -> list[str]:
    """The lines of a page's code blocks that run situate."""
    text = page.read_text().replace("\\\n", " ")
    return re.findall(r"^(?:\$ |    (?:\$ )?)(situate .*)$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "line"), [(page.name, line) for page in PAGES for line in commands(page)]
)
def test_every_command_line_has_a_command_and_options_that_exist(page, line):
    words = shlex.split(line, comments=True)[1:]
    command = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", ()):
        command = command.commands[words.pop(0)]
    command.make_context(page, words)  # raises the command line's own error; runs nothing


def leaves(command: Any, *words: str) -> Iterator[tuple[str, Any]]:
    """All commands that do something, by their words."""
    if below := getattr(command, "commands", {}):
        for word, each in below.items():
            yield from leaves(each, *words, word)
    else:
        yield " ".join(words), command


@pytest.mark.parametrize(("words", "command"), leaves(typer.main.get_command(app)))
def test_every_command_is_in_the_table_of_its_page_and_every_option_on_one(words, command):
    page = (ROOT / "docs" / "command-line.md").read_text()
    table = page.partition("| command | does |")[2].partition("\n\n")[0]
    assert re.search(rf"^\|[^|]*`{words}\b", table, re.MULTILINE)
    told = page if words != "bench" else (ROOT / "docs" / "bench.md").read_text()
    names = [name for option in command.params for name in option.opts if name.startswith("--")]
    assert [name for name in names if not re.search(rf"{name}(?![\w-])", told)] == []


def blocks(language: str) -> list[Any]:
    """The fenced blocks of a language on all pages, named by page and number."""
    parameters = []
    for page in PAGES:
        texts = re.findall(rf"```{language}\b[^\n]*\n(.*?)```", page.read_text(), re.DOTALL)
        name = page.relative_to(ROOT)
        parameters += [pytest.param(text, id=f"{name}-{i}") for i, text in enumerate(texts)]
    return parameters


def complete(block: str) -> str:
    """A block with a text wherever dots stand for more items."""
    return re.sub(r"(?<=\s)\.\.\.(?=[,\s])", '"more"', block)


# Blocks that no test runs as a program at least compile, and import what exists.
@pytest.mark.parametrize("block", blocks("python"))
def test_every_block_of_python_compiles_and_imports_names_that_exist(block):
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("situate"):
            module = importlib.import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "situate":
            assert hasattr(situate, node.attr)


@pytest.mark.parametrize("block", blocks("toml"))
def test_every_block_of_toml_parses(block):
    assert tomllib.loads(complete(block))


@pytest.mark.parametrize("block", blocks("json"))
def test_every_block_of_json_parses(block):
    assert json.loads(complete(block))


def program(page: str, kind: str = "python", names: dict[str, Any] | None = None) -> dict[str, Any]:
    """The names that the Python code of a page leaves, run as one program."""
    names = {} if names is None else names
    text = (ROOT / "docs" / page).read_text()
    exec("\n".join(re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)), names)
    return names


@pytest.fixture(scope="module")
def of_python(tmp_path_factory):
    """The names that the program of the page on Python leaves, in the folder where it ran."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("python"))
        yield program("python.md")


def test_the_program_of_the_page_on_python_runs(of_python):
    assert of_python["result"].optimal
    assert of_python["by_hand"].value >= of_python["result"].value
    assert of_python["path"].compute == pytest.approx(0.015)


def test_the_page_on_python_lists_every_public_name_and_no_other():
    assert EXAMPLES.keys() == set(situate.__all__)


@pytest.mark.parametrize("name", sorted({*EXAMPLES} - {*ERRORS}))
def test_the_example_of_a_public_name_uses_it(name):
    assert re.search(rf"\bsituate\.{name}\b", EXAMPLES[name])


def test_the_page_on_python_imports_nothing_that_is_not_public():
    assert "from situate" not in PUBLIC


@pytest.mark.parametrize("name", sorted({*EXAMPLES} - {*ERRORS} - NEED_TORCH))
def test_the_example_of_a_public_name_runs(name, of_python):
    exec(EXAMPLES[name], dict(of_python))


@pytest.mark.parametrize("name", ERRORS)
def test_the_example_of_an_error_raises_it(name, of_python):
    with pytest.raises(getattr(situate, name)) as raised:
        exec(EXAMPLES[name], dict(of_python))
    assert type(raised.value) is getattr(situate, name)


def test_the_examples_of_pytorch_models_run(of_python):
    pytest.importorskip("torch")
    names = program("python.md", "python torch", dict(of_python))
    assert names["losses"][-1] < names["losses"][0]
    for name in NEED_TORCH:
        exec(EXAMPLES[name], names)


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


@pytest.mark.parametrize(
    ("benchmark", "commit"),
    re.findall(r"\| `([\w.]+)`, (\w+) \|$", (ROOT / "README.md").read_text(), re.MULTILINE),
)
def test_a_figure_of_the_readme_names_the_commit_of_its_record(benchmark, commit):
    record = ROOT / "benchmarks" / "results" / f"{benchmark.rpartition('.')[2]}.json"
    assert json.loads(record.read_text())["commit"].startswith(commit)
