"""User-defined operators are found by the module that defines them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.programs.custom_ops import defining_modules, load  # noqa: E402
from situate.runtime.programs.program import capture_program  # noqa: E402
from tests.runtime import misbehaving  # noqa: E402

KERNELS = ["aten::add.Tensor", "situate_tests::harm", "situate_tests::pass_on.default"]


# Modules to import, and operators that are refused.
def test_only_operators_of_a_users_own_need_a_module() -> None:
    assert defining_modules(KERNELS) == (misbehaving.__name__,)
    assert defining_modules(KERNELS[:1]) == ()


def test_loaded_modules_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tests.runtime.models")
    load(["tests.runtime.models"])
    assert "tests.runtime.models" in sys.modules


def test_modules_of_the_current_directory_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "operators_here.py").touch()
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    load(["operators_here"])
    assert sys.modules.pop("operators_here").__file__ == str(tmp_path / "operators_here.py")
    assert sys.path == before


@torch.library.custom_op("situate_custom::double_", mutates_args={"x"})
def double_(x: Tensor) -> None:
    """Writes over its input."""
    x.mul_(2)


class Doubling(nn.Linear):
    """Overwrites its input."""

    def forward(self, x: Tensor) -> Tensor:
        double_(x)
        return super().forward(x)


@pytest.mark.parametrize("training", [True, False])
def test_an_operator_that_writes_over_its_inputs_is_refused_by_name(training: bool) -> None:
    model, inputs = Doubling(3, 1), (torch.ones(2, 3),)
    with pytest.raises(SituateError) as error:
        capture_program(model, inputs, lambda m, x: m(x).mean(), training=training, name="m")
    assert str(error.value) == (
        "m: operator situate_custom::double_ writes over its inputs, which no placed step does: "
        "let it return new tensors, as a torch.library.custom_op with mutates_args=()"
    )
