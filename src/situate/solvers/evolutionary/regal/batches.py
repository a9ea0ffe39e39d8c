"""Batches of encoded problems for PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from situate.policies.graph_network import GraphBatch
from situate.solvers.evolutionary.regal.encoding import Encoding


def batch_of(encodings: Sequence[Encoding]) -> GraphBatch:
    """A batch of problems, with their ops numbered consecutively."""
    sizes = [len(encoding.nodes) for encoding in encodings]
    begin = np.cumsum([0, *sizes[:-1]])
    source, target = (
        np.concatenate(
            [getattr(encoding, of) + at for encoding, at in zip(encodings, begin, strict=True)]
        )
        for of in ("source", "target")
    )
    return GraphBatch(
        torch.from_numpy(np.concatenate([encoding.nodes for encoding in encodings])),
        torch.from_numpy(np.concatenate([encoding.edges for encoding in encodings])),
        torch.from_numpy(source),
        torch.from_numpy(target),
        torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes)),
        torch.from_numpy(np.concatenate([encoding.place for encoding in encodings])),
        len(sizes),
    )
