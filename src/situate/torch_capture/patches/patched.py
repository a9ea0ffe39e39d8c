"""Temporary replacements of PyTorch's functions, kernels and code."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import FunctionType
from typing import Any


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    """A block in which `owner.name` is `value`."""
    # Static: a property or a classmethod is put back as it is, not what it returns.
    before = inspect.getattr_static(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextlib.contextmanager
def whole(overload: Any) -> Iterator[None]:
    """A block that traces operator `overload` without its Python decompositions, forward and
    backward."""
    from torch._C import DispatchKey

    # PyTorch registers Python decompositions of the operator and of its gradient under these keys.
    instead = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)
    kernels = {key: of for key, of in overload.py_kernels.items() if key not in instead}
    with kernels_replaced(overload, kernels):
        yield


@contextlib.contextmanager
def kernels_replaced(overload: Any, kernels: Mapping[Any, Any]) -> Iterator[None]:
    """A block in which operator `overload` has these Python kernels, by dispatch key."""
    try:
        with replaced(overload, "py_kernels", kernels):
            # Resolved kernels are cached in the operator, before and after.
            overload._dispatch_cache.clear()
            yield
    finally:
        overload._dispatch_cache.clear()


@contextlib.contextmanager
def dispatched(handle: Callable[..., Any]) -> Iterator[None]:
    """A block in which an operator on fake tensors returns `handle(run, mode, operator, args,
    kwargs)`; `run(operator, args, kwargs)` is the original call."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    before = FakeTensorMode.dispatch

    def dispatch(
        mode: Any,
        func: Any,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> Any:
        def run(*operator: Any) -> Any:
            return before(mode, operator[0], types, *operator[1:])

        return handle(run, mode, func, args, kwargs or {})

    with replaced(FakeTensorMode, "dispatch", dispatch):
        yield


REPLACEMENT = "_situate_replacement"
"""The name of the replacement among the globals of a function."""


@contextlib.contextmanager
def code_replaced(function: Any, replacement: Callable[..., Any]) -> Iterator[None]:
    """A block in which a method returns `replacement(original, *args, **kwargs)`, also where a
    program refers to the method by a name of its own.

    Args:
        function: a Python function whose only free variable is `__class__`, as of a method that
            calls `super()`.
        replacement: takes the original function, and the arguments.
    """
    code, names = function.__code__, function.__globals__
    original = FunctionType(
        code, names, function.__name__, function.__defaults__, function.__closure__
    )
    # Code has no variable to hold the replacement, so a global of its module does.
    names[REPLACEMENT] = partial(replacement, original)
    function.__code__ = _Redirected.call.__code__
    try:
        yield
    finally:
        function.__code__ = code
        del names[REPLACEMENT]


class _Redirected:
    def call(*args: Any, **kwargs: Any) -> Any:
        # Code takes the place only of code with as many free variables.
        __class__  # type: ignore[name-defined]  # noqa: B018
        return _situate_replacement(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821
