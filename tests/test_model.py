"""Names that people give to models."""

from __future__ import annotations

import pytest

from situate import zoo
from situate.data import graph_json
from situate.data.slices import Slices
from situate.errors import ReadError, SituateError
from situate.model import find_model, trace_model
from tests.cli.conftest import diamond


# A file comes before a network of the same name, and takes no options of a capture.
def test_a_file_is_read(tmp_path):
    graph_json.write(diamond(), tmp_path / "d.json")
    assert find_model(str(tmp_path / "d.json")) == diamond()


def test_a_file_comes_before_a_network_of_the_same_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graph_json.write(diamond(), "resnet50")
    assert find_model("resnet50").name == "diamond"


def test_a_network_of_the_zoo_is_loaded_although_a_folder_has_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inception_v3").mkdir()
    assert len(find_model("inception_v3").ops) > 1000


def test_a_file_takes_no_optimizer(tmp_path):
    graph_json.write(diamond(), tmp_path / "d.json")
    with pytest.raises(SituateError, match="--optimizer"):
        find_model(str(tmp_path / "d.json"), "adam")


def test_a_file_takes_no_slices(tmp_path):
    graph_json.write(diamond(), tmp_path / "d.json")
    with pytest.raises(SituateError, match=r"holds a step of one size.*package.module:function"):
        find_model(str(tmp_path / "d.json"), slices=Slices((1, 1)))


def test_a_file_runs_nothing_again(tmp_path):
    graph_json.write(diamond(), tmp_path / "d.json")
    for function in (find_model, trace_model):
        more = {"recompute": ["all"]} if function is find_model else {}
        with pytest.raises(SituateError, match=r"holds a step as it was captured.*:function"):
            function(str(tmp_path / "d.json"), **more)


# A wrong name is answered with the right one.
def test_a_slip_in_a_name_is_answered_with_the_nearest():
    with pytest.raises(SituateError, match="did you mean 'resnet50'"):
        find_model("resnet5")


def test_without_a_near_name_all_are_listed():
    with pytest.raises(SituateError, match=zoo.names()[0]):
        find_model("zzzzzz")


def test_a_missing_file_is_named():
    with pytest.raises(ReadError, match=r"no/such.json: no such file"):
        find_model("no/such.json")


def test_a_folder_is_no_model(tmp_path):
    with pytest.raises(ReadError, match="is a directory"):
        find_model(str(tmp_path))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the modules `mine` and `nets.deep`, below one with `above`."""
    folder = tmp_path / "here"
    for name in ("above.py", "here/mine.py", "here/nets/deep.py", "here/my-nets/flat.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("def build(): ...")
    monkeypatch.chdir(folder)
    return folder


# Functions are named by modules, and files of source lead to the module.
@pytest.mark.parametrize("text", ["nets/mine.py", "nets.mine"])
def test_of_a_module_a_function_is_asked_for(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "mine.py").write_text("def build(): ...")
    with pytest.raises(SituateError, match=r"give a function in it .*: nets.mine:FUNCTION"):
        find_model(text)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("mine.py:build", "write mine:build"),
        ("./mine.py:build", "write mine:build"),
        ("nets/deep.py:build", "write nets.deep:build"),
        ("nets/deep:build:inference", "write nets.deep:build:inference"),
        ("nets.deep.py:build", "write nets.deep:build"),
        ("../above.py:build", "write above:build, from .."),
        ("my-nets/flat.py:build", "write flat:build, from my-nets"),
    ],
)
def test_a_function_of_a_file_is_answered_with_that_of_the_module(here, text, remedy):
    with pytest.raises(SituateError) as error:
        find_model(text)
    assert str(error.value) == f"{text}: name a function by its module: {remedy}"


@pytest.mark.parametrize("text", ["none.py:build", "nets/none:build"])
def test_a_function_of_a_file_that_is_missing(here, text):
    with pytest.raises(ReadError, match=r"none.py: no such file$"):
        find_model(text)


def test_a_file_whose_name_no_module_can_have_is_to_be_renamed(here):
    (here / "my-net.py").write_text("def build(): ...")
    with pytest.raises(SituateError, match=r"^my-net.py: no module can have that name: rename it"):
        find_model("my-net.py:build")


def test_a_module_elsewhere_is_named_with_its_folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "mine.py").write_text("def build(): ...")
    with pytest.raises(SituateError, match=r": mine:FUNCTION, from \.\.$"):
        find_model(str(tmp_path / "mine.py"))
