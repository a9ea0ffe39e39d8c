"""`import situate`: the names it gives, and the modules that it does not load."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import situate

HEAVY = ("torch", "onnx", "matplotlib", "numpy", "transformers", "tensorboard", "accelerate")


def loaded_by(statement: str) -> set[str]:
    """The modules loaded after `statement` in a fresh interpreter."""
    code = f"import sys\ntry:\n    {statement}\nexcept SystemExit: pass\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "statement",
    [
        "import situate",
        "from situate.cli import main; main(['--help'])",
        "from situate.cli import main; main(['plan', '--help'])",
        "from situate.cli import main; main(['--version'])",
    ],
)
def test_nothing_heavy_loads_before_it_is_needed(statement):
    assert loaded_by(statement).isdisjoint(HEAVY)


@pytest.mark.parametrize("method", ["spotlight", "colocrl", "hierarchical"])
def test_the_record_of_a_method_loads_no_pytorch(method):
    assert "torch" not in loaded_by(f"import situate; print(situate.METHODS[{method!r}].summary)")


def test_planning_a_packaged_network_loads_no_capture_no_other_format_and_no_study():
    loaded = loaded_by(
        "import situate; "
        "graph = situate.zoo.load('rnnlm'); "
        "problem = situate.Problem(graph, situate.Cluster.preset('k80-4')); "
        "situate.solve(problem, 'single'); print()"
    )
    foreign = ("situate.torch_capture", "situate.readers.onnx", "situate.study", "sqlite3")
    assert loaded.isdisjoint(foreign)


def test_at_most_40_public_names():
    assert len(situate.__all__) <= 40
    assert len(set(situate.__all__)) == len(situate.__all__)


@pytest.mark.parametrize("name", situate.__all__)
def test_every_public_name_is_there(name):
    if name == "capture":
        pytest.importorskip("torch")
    assert getattr(situate, name) is not None


def test_every_public_name_is_listed():
    assert set(situate.__all__) <= set(dir(situate))


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        situate.nonsense  # noqa: B018


def test_the_version_is_the_packages():
    project = Path(__file__).parents[1] / "pyproject.toml"
    assert tomllib.loads(project.read_text())["project"]["version"] == situate.__version__


def test_the_citation_is_of_this_version_and_its_licence():
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    text = (root / "CITATION.cff").read_text()
    cited = dict(re.findall(r'^([\w-]+): "?(.+?)"?$', text, re.MULTILINE))
    assert cited["title"] == project["name"]
    assert cited["version"] == situate.__version__
    assert cited["license"] == project["license"]
