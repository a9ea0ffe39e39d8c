"""The ops of a pass that all parts of a layer share, and the inputs of the graph."""

from __future__ import annotations

from situate.language.activations.blocks import PASS, Block, Matrix, PassOptions
from situate.language.activations.tensors import (
    F16,
    F32,
    I32,
    I64,
    Graph,
    Tensor,
    entry,
)
from situate.language.hyperparameters import Hyperparameters


class Scope:
    """A graph under construction, at one of its layers.

    Attributes:
        sizes, options: of the pass.
        traits: of the architecture.
        graph: the ops so far.
        tokens: of the ubatch, a multiple of the slots.
        streams: caches side by side.
        positions, outputs: inputs of the graph: rotary positions, and tokens with logits.
        masks, key_rows, value_rows: inputs of the layers with a window (True) and without.
        rotations: matrices that turn heads before they are quantised, by kind and window.
        block, weights: the layer, and its weights by name.
        pinned: its normalisations run where it lies.
    """

    def __init__(self, sizes: Hyperparameters, options: PassOptions) -> None:
        self.sizes, self.options = sizes, options
        self.traits = PASS[sizes.architecture]
        self.graph = Graph()
        slots = options.cache.slots
        # Rounded up to equally many tokens of each slot, as `graph_reserve` does.
        self.tokens = -(-options.cache.ubatch // slots) * slots
        self.streams = options.cache.streams
        self.positions = entry((self.tokens,), I32)
        self.outputs = entry((options.outputs,), I32)
        windows = (False, True) if any(sizes.windowed) else (False,)
        self.masks = {window: self.mask(window) for window in windows}
        self.key_rows = {window: entry((self.tokens,), I64) for window in windows}
        self.value_rows = {window: self.value_entry() for window in windows}
        self.rotations: dict[tuple[str, bool], Tensor] = {}
        self.block = Block(0, False, ())
        self.weights: dict[str, Matrix] = {}
        self.pinned = False

    def enter(self, block: Block, pinned: bool) -> None:
        """Go on to a layer."""
        self.block, self.weights, self.pinned = block, dict(block.weights), pinned

    def op(
        self,
        shape: tuple[int, ...],
        *sources: Tensor,
        element: int = F32,
        batch: int | None = None,
    ) -> Tensor:
        """An op with memory of its own."""
        return Tensor(shape, sources, element, batch=batch)

    def in_place(self, *sources: Tensor) -> Tensor:
        """An op that may write over its first input, of whose shape its result is."""
        return Tensor(sources[0].shape, sources, in_place=True)

    def has(self, name: str) -> bool:
        """True if the layer has a tensor of that name."""
        return name in self.weights

    def weight(self, name: str) -> Tensor:
        """A tensor of the layer."""
        return self.weights[name].tensor()

    def product(self, name: str, x: Tensor) -> Tensor:
        """A matrix product, with its bias."""
        weight = self.weight(f"{name}.weight")
        batch = x.shape[1] if len(x.shape) > 1 else 1
        result = self.op((weight.shape[1], *x.shape[1:]), weight, x, batch=batch)
        return self.biased(name, result)

    def biased(self, name: str, x: Tensor) -> Tensor:
        """The sum with a bias, if the layer has one."""
        bias = f"{name}.bias"
        return self.in_place(x, self.weight(bias)) if self.has(bias) else x

    def norm(self, x: Tensor, name: str, free: bool = False) -> Tensor:
        """A normalisation with its weights; `free` if nothing pins it to the layer's device."""
        normed = self.normalised(x)
        if self.pinned and not free:
            normed.device = self.block.place
        return self.biased(name, self.in_place(normed, self.weight(f"{name}.weight")))

    def normalised(self, x: Tensor) -> Tensor:
        """A normalisation without weights; only the root mean square is computed in place."""
        return self.op(x.shape, x) if self.traits.centred else self.in_place(x)

    def rows(self, x: Tensor) -> Tensor:
        """The tokens with logits."""
        return self.op((x.shape[0], self.options.outputs), x, self.outputs)

    def cells(self, window: bool) -> int:
        """Tokens that a cache holds."""
        return (
            self.options.cache.window_cells(self.sizes.window)
            if window
            else self.options.cache.cells
        )

    def mask(self, window: bool) -> Tensor:
        """The mask of attention; early builds convert it on each device."""
        cells, streams = self.cells(window), self.streams
        shape = (cells, self.tokens // streams, 1, streams)
        if self.options.early and self.options.flash:
            return self.op(shape, entry(shape), element=F16)
        return entry(shape, F16 if self.options.flash else F32)

    def value_entry(self) -> Tensor:
        """Where values go in their cache; without flash attention they lie by rows."""
        h = self.sizes
        width = 1 if self.options.flash else max(h.kv_heads) * h.value_size
        return entry((self.tokens * width,), I64)
