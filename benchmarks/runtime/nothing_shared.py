"""Slices of a step in processes that share nothing: an upper bound on a machine's gain."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from multiprocessing.connection import Connection

import torch

from benchmarks.runtime.runtime_cases import Case


class NothingShared:
    """The forward and backward passes of a network on each equal slice of its batch, in PyTorch, at
    once: a process a slice, one thread each, with a copy of the model, gradients that stay there
    and no update. So a step that shares its work out over as many devices can hardly be faster, and
    its excess over one slice alone is the contention of the machine's cores."""

    def __init__(self, case: Case, slices: int) -> None:
        start = multiprocessing.get_context("spawn")
        self._ends: list[Connection] = []
        self._processes = []
        for s in range(slices):
            ours, theirs = start.Pipe()
            # Without what it has kept, such as a captured step, which no process could be sent.
            sent = replace(case), slices, s, theirs
            process = start.Process(target=_serve, args=sent, daemon=True)
            process.start()
            self._ends.append(ours)
            self._processes.append(process)
        for end in self._ends:
            end.recv()

    def __call__(self) -> None:
        """Run all, until the last has ended."""
        for end in self._ends:
            end.send(True)
        for end in self._ends:
            end.recv()

    def __enter__(self) -> NothingShared:
        return self

    def __exit__(self, *_: object) -> None:
        for end, process in zip(self._ends, self._processes, strict=True):
            end.send(False)
            process.join()


def _serve(case: Case, slices: int, s: int, end: Connection) -> None:
    torch.set_num_threads(1)
    model, inputs, loss = case.built
    part = tuple(tensor.tensor_split(slices)[s] for tensor in inputs)
    end.send(True)
    while end.recv():
        model.zero_grad()
        loss(model, *part).backward()
        end.send(True)
