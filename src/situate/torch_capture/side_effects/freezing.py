"""Steps that freeze parameters for a part of themselves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from situate.torch_capture.patches.patched import replaced
from situate.torch_capture.refusals.remedies import Unsupported

FREEZES = (
    "the step freezes a parameter, which capture does not see: freeze it where the model is built; "
    "for a part of the step call its module by torch.func.functional_call on detached parameters"
)


@contextlib.contextmanager
def parameters_stay_trained() -> Iterator[None]:
    """Refuse to unset `requires_grad` of what is trained: export writes down no such thing."""
    import torch

    of_base: Any = torch._C.TensorBase.requires_grad

    def put(tensor: Any, value: bool) -> None:
        if not value and of_base.__get__(tensor) and tensor.is_leaf:
            raise Unsupported(FREEZES)
        of_base.__set__(tensor, value)

    watched = property(of_base.__get__, put)
    with (
        replaced(torch.Tensor, "requires_grad", watched),
        replaced(torch.Tensor, "requires_grad_", _require),
    ):
        yield


def _require(tensor: Any, requires_grad: bool = True) -> Any:
    tensor.requires_grad = requires_grad
    return tensor
