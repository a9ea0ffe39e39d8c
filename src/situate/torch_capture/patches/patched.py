"""PyTorch with something else in place of one of its functions, for as long as it traces."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import FunctionType
from typing import Any


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    """`owner.name` is `value` within."""
    # Static: a property or a classmethod is put back as it is, not what it returns.
    before = inspect.getattr_static(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextlib.contextmanager
def whole(overload: Any) -> Iterator[None]:
    """Operator `overload` is traced without what Python puts in place of it and of its gradient."""
    from torch._C import DispatchKey

    # PyTorch registers Python decompositions of the operator and of its gradient under these keys.
    instead = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)
    kernels = {key: of for key, of in overload.py_kernels.items() if key not in instead}
    with kernels_replaced(overload, kernels):
        yield


@contextlib.contextmanager
def kernels_replaced(overload: Any, kernels: Mapping[Any, Any]) -> Iterator[None]:
    """Operator `overload` has these Python kernels, by dispatch key, within."""
    try:
        with replaced(overload, "py_kernels", kernels):
            # Resolved kernels are cached in the operator, before and after.
            overload._dispatch_cache.clear()
            yield
    finally:
        overload._dispatch_cache.clear()


@contextlib.contextmanager
def dispatched(handle: Callable[..., Any]) -> Iterator[None]:
    """An operator on fake tensors gives what `handle(run, mode, operator, args, kwargs)` does, and
    `run(operator, args, kwargs)` what it gave before."""
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
"""The name, among the globals of a replaced function, of what is called in its place."""


@contextlib.contextmanager
def code_replaced(function: Any, replacement: Callable[..., Any]) -> Iterator[None]:
    """A method gives what `replacement(original, *args, **kwargs)` does, also where a program has a
    name of its own for it.

    Args:
        function: a Python function whose only free variable is `__class__`, as of a method that
            calls `super()`.
        replacement: takes the function as it was, and the arguments.
    """
    code, names = function.__code__, function.__globals__
    original = FunctionType(
        code, names, function.__name__, function.__defaults__, function.__closure__
    )
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
