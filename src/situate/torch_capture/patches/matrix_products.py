"""Products of tensors, which PyTorch makes of one dtype only, and traces of any."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from situate.torch_capture.patches.patched import dispatched
from situate.torch_capture.refusals.remedies import Unsupported

PRODUCTS = frozenset(
    {"addmm", "mm", "bmm", "baddbmm", "addmv", "mv", "dot", "linear", "matmul", "convolution"}
)
MIXED = "a product of {} and {} is asked for here, which PyTorch makes of one dtype only: cast one"


@contextlib.contextmanager
def products_of_one_dtype() -> Iterator[None]:
    """Refuse a product of two, as eager PyTorch does."""

    def checked(
        run: Any, _: Any, func: Any, args: Sequence[object], kwargs: Mapping[str, Any]
    ) -> Any:
        if getattr(func, "_opname", None) in PRODUCTS:
            _check(args)
        return run(func, args, kwargs)

    with dispatched(checked):
        yield


def _check(arguments: Sequence[object]) -> None:
    import torch

    dtypes = [value.dtype for value in arguments if isinstance(value, torch.Tensor)]
    other = next((dtype for dtype in dtypes if dtype != dtypes[0]), None)
    if other is not None:
        raise Unsupported(MIXED.format(_name(dtypes[0]), _name(other)))


def _name(dtype: object) -> str:
    return str(dtype).removeprefix("torch.")
