"""Traces of steps that tests only read: each is made once for all tests of a process.

A trace takes most of the time of a test that plans, verifies or exports a small step. Tests of
capture itself trace every step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

SHARED = "tests."
"""The prefix of names of steps that are the same wherever they are built."""

_TRACES: dict[Any, Any] = {}
"""The traces of each step, by the description of its model and inputs."""

_INFERENCE: dict[int, Any] = {}
"""The traces without gradients, by the id of the step on fake tensors, which `_TRACES` holds."""


@contextmanager
def shared() -> Iterator[None]:
    """A block in which captures share the traces of steps whose name begins with `SHARED`."""
    from situate import torch_capture
    from situate.runtime.programs import program
    from situate.torch_capture.slices.traces import Traces
    from situate.torch_capture.tracing import copied, joint

    def shared_traces(fake: Any, name: str, check: bool = False) -> Any:
        if not name.startswith(SHARED):
            return Traces(fake, name, check)
        key = name, check, *_description(fake)
        traces = _TRACES.setdefault(key, Traces(fake, name, check))
        # Names of devices in the step are known only when it is traced.
        fake.devices._names = traces.fake.devices._names
        return traces

    def shared_joint(fake: Any, training: bool, name: str) -> Any:
        if all(fake is not traces.fake for traces in _TRACES.values()):
            return joint(fake, training, name)
        if id(fake) not in _INFERENCE:
            _INFERENCE[id(fake)] = joint(fake, training, name)
        return copied(_INFERENCE[id(fake)])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch_capture, "Traces", shared_traces)
        patch.setattr(program, "Traces", shared_traces)
        patch.setattr(torch_capture, "joint", shared_joint)
        yield


def _description(fake: Any) -> Iterator[Any]:
    """All that may differ between two steps of one name: sizes, dtypes, settings, values of inputs,
    and functions that a test replaced."""
    model, first = fake.model, dict[int, str]()
    state = [
        *model.named_parameters(remove_duplicate=False),
        *model.named_buffers(remove_duplicate=False),
    ]
    yield bool(fake.originals)
    yield getattr(fake.loss, "__code__", type(fake.loss))
    yield tuple((path, type(m).forward, m.extra_repr()) for path, m in model.named_modules())
    yield tuple(first.setdefault(id(tensor), path) for path, tensor in state)
    for tensor in (*(tensor for _, tensor in state), *fake.tensors):
        yield tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.requires_grad
    for number, example in fake.examples.items():
        yield number, example.name, example.is_random, example.values.numpy().tobytes()
    yield fake.names, repr(fake.sequences)
