"""Ranks of a process group, forked from one server that has loaded their modules."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

from tests import forks

LLAMA = "transformers.models.llama.modeling_llama"

MODULES = ("torch.distributed.tensor.parallel", "torch.distributed.fsdp", LLAMA)
"""Modules that take a rank seconds to load."""


def start_ranks(run_rank: Callable[..., None], arguments: tuple[Any, ...], count: int) -> None:
    """Call run_rank(rank, *arguments) in count processes, and wait for all."""
    import torch

    if forks.AVAILABLE:
        multiprocessing.set_forkserver_preload([run_rank.__module__, *MODULES])
    method = "forkserver" if forks.AVAILABLE else "spawn"
    torch.multiprocessing.start_processes(run_rank, arguments, count, start_method=method)
