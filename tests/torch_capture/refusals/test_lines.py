"""The line of the user's program that is at fault, among those of PyTorch, Python and situate."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.torch_capture.refusals import lines  # noqa: E402


def raised(call):
    with pytest.raises(Exception) as error:  # noqa: PT011
        call()
    return error.value


def fails():
    assert torch is None


# The line at fault is the innermost one of the user's program.
def test_the_innermost_line_of_the_program_is_named():
    error = raised(lambda: torch.nn.Linear(3, 3)(torch.ones(2)))
    assert lines.user_line(error).startswith("tests/torch_capture/refusals/test_lines.py:")
    assert lines.user_frame(error).line == (
        "error = raised(lambda: torch.nn.Linear(3, 3)(torch.ones(2)))"
    )


def test_what_the_program_raises_is_told_from_what_pytorch_raises():
    assert lines.is_raised_by_user(raised(fails))
    assert not lines.is_raised_by_user(raised(lambda: torch.ones(2).view(3)))
    assert not lines.is_raised_by_user(raised(lambda: torch.nn.Linear(3, 3)(torch.ones(2))))
    assert not lines.is_raised_by_user(ValueError("was never raised"))


def test_a_traceback_in_words_names_it_too():
    text = 'File "/mine/a.py", line 3, in f\n  File "/mine/b.py", line 4, in forward\n    y = x'
    assert lines.user_line_in(text) == "/mine/b.py:4: "
    assert lines.user_line_in("no such thing") == ""


def test_what_called_the_capture_is_not_at_fault():
    inside = f'File "/mine/a.py", line 3, in f\n  File "{lines.SITUATE[0]}/a.py", line 4, in g'
    assert lines.user_line_in(inside) == ""


# A line of a package is named by its path in the package.
def test_a_file_of_a_package_is_named_by_its_place_in_it():
    assert lines.inside_package("/x/lib/site-packages/timm/layers/norm.py") == "timm/layers/norm.py"
    assert lines.inside_package("/home/me/norm.py") == ""
    assert lines.is_users("/x/lib/site-packages/timm/layers/norm.py")
    assert not lines.is_users(torch.nn.Linear.forward.__code__.co_filename)


def test_a_package_that_is_installed_elsewhere_is_one(tmp_path, monkeypatch):
    (tmp_path / "net-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert lines.inside_package(str(tmp_path / "net" / "layer.py")) == "net/layer.py"


def test_a_users_own_folder_is_no_package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    assert lines.inside_package(str(tmp_path / "net" / "layer.py")) == ""
