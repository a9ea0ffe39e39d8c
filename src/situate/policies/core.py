"""Functions of the core on PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from situate.policies.arithmetic import threads


def array(tensor: Tensor) -> NDArray[Any]:
    """The numbers of a tensor, without gaps; copied only where there are any."""
    numbers: NDArray[Any] = tensor.detach().contiguous().numpy()
    return numbers


def called(function: Callable[..., Any], *tensors: Tensor) -> list[Tensor]:
    """The tensors that a function of the core makes of tensors, on as many threads as may be."""
    made = function(*map(array, tensors), threads=threads())
    return [torch.from_numpy(each) for each in (made if isinstance(made, tuple) else (made,))]
