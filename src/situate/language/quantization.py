"""The type of each tensor under a file type such as `Q4_K_M`, by the rules of llama-quantize.

They are the facts of `src/llama-quant.cpp` in llama.cpp. Files quantised by other rules (`UD-`
mixtures, types given by hand) are known by their headers alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from situate.errors import SituateError, nearest
from situate.language.hyperparameters import Hyperparameters
from situate.language.tensor_types import TYPES, TensorType

FILE_TYPES = {
    "F32": "F32",
    "F16": "F16",
    "BF16": "BF16",
    "Q4_0": "Q4_0",
    "Q4_1": "Q4_1",
    "Q5_0": "Q5_0",
    "Q5_1": "Q5_1",
    "Q8_0": "Q8_0",
    "Q2_K": "Q2_K",
    "Q2_K_S": "Q2_K",
    "Q3_K_S": "Q3_K",
    "Q3_K_M": "Q3_K",
    "Q3_K_L": "Q3_K",
    "Q4_K_S": "Q4_K",
    "Q4_K_M": "Q4_K",
    "Q5_K_S": "Q5_K",
    "Q5_K_M": "Q5_K",
    "Q6_K": "Q6_K",
    "IQ1_S": "IQ1_S",
    "IQ1_M": "IQ1_M",
    "IQ2_XXS": "IQ2_XXS",
    "IQ2_XS": "IQ2_XS",
    "IQ2_S": "IQ2_XS",
    "IQ2_M": "IQ2_S",
    "IQ3_XXS": "IQ3_XXS",
    "IQ3_XS": "IQ3_S",
    "IQ3_S": "IQ3_S",
    "IQ3_M": "IQ3_S",
    "IQ4_NL": "IQ4_NL",
    "IQ4_XS": "IQ4_XS",
    "TQ1_0": "TQ1_0",
    "TQ2_0": "TQ2_0",
    "MXFP4_MOE": "MXFP4",
}
"""The usual type of a tensor under each file type."""

NUMBERED_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K",
    11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S",
    17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS",
    23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M",
    30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE",
}  # fmt: skip
"""File types by `general.file_type` of a GGUF file."""

ALIASES = {"Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M", "MXFP4": "MXFP4_MOE"}

TWO_BITS = ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M")
"""File types of two bits and fewer, which have rules of their own."""

NEEDS_IMATRIX = (*TWO_BITS, "IQ3_XXS")
"""File types that llama-quantize refuses to make without an importance matrix."""

FALLBACKS = {
    **dict.fromkeys(
        ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_XS"), "IQ4_NL"
    ),
    **dict.fromkeys(("Q2_K", "Q3_K", "TQ1_0", "TQ2_0"), "Q4_0"),
    "Q4_K": "Q5_0",
    "Q5_K": "Q5_1",
    "Q6_K": "Q8_0",
}
"""The type of a tensor whose rows are no whole number of blocks of another type."""

UNQUANTIZED = (
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ssm_conv1d",
    "shortconv.conv.weight",
)
"""Parts of the names of matrices that keep 32 bits."""

CATEGORIES = (
    ("attn_qkv.weight", "qkv"),
    ("attn_kv_b.weight", "kv_b"),
    ("attn_v.weight", "v"),
    ("attn_k.weight", "k"),
    ("attn_q.weight", "q"),
    ("attn_output.weight", "attn_output"),
    ("ffn_up", "up"),
    ("ffn_gate", "gate"),
    ("ffn_down", "down"),
)
"""Categories of tensors by a part of their name; the first that fits counts."""

LIKE_VALUES = ("v", "qkv", "kv_b")
"""Categories that are as sensitive as the values of the attention."""


def find_file_type(name: str) -> str:
    """The file type that a user means, such as `Q4_K_M` by `q4_k_m` or `Q4_K`.

    Raises:
        SituateError: llama-quantize has no such file type.
    """
    upper = name.upper().replace("-", "_")
    upper = ALIASES.get(upper, upper)
    if upper in FILE_TYPES:
        return upper
    if upper.startswith("UD_"):
        raise SituateError(
            f"--quant {name}: is a mixture that no rule describes: give the GGUF file, or the "
            "beginning of it that holds its header"
        )
    raise SituateError(f"--quant {name}: unknown file type{nearest(upper, FILE_TYPES)}")


@dataclass
class _Mixture:
    """A model while its tensors receive types, in the order of their layers.

    Attributes:
        file_type: such as `Q4_K_M`.
        grouping: heads of queries for each head of keys.
        imatrix: the file is made with an importance matrix.
        large: the model is one of 70 billion parameters with grouped attention.
        counts: tensors so far, by category.
    """

    file_type: str
    layers: int
    grouping: int
    experts: int
    imatrix: bool
    large: bool
    tied: bool
    values: int
    counts: dict[str, int]

    def type_of(self, name: str, shape: Sequence[int]) -> str:
        """The name of a tensor's type."""
        usual = FILE_TYPES[self.file_type]
        category = _category(name)
        if category == "output" or (category == "embedding" and self.tied):
            return self._output(usual, shape)
        if self.file_type == "MXFP4_MOE":
            return "MXFP4" if len(shape) > 2 and shape[2] > 1 else "Q8_0"
        if category == "embedding":
            return self._embedding() or usual
        # Rules count the tensors of a category as they come, not layers.
        index = self.counts.get(category, 0)
        self.counts[category] = index + 1
        if self.file_type in TWO_BITS:
            return self._two_bits(category, index) or usual
        if category in LIKE_VALUES:
            return self._values(usual)
        rule = {
            "k": self._keys,
            "q": self._queries,
            "attn_output": self._attention_output,
        }.get(category)
        if rule is not None:
            return rule() or usual
        layer = _layer(name, index) if self.experts > 1 else index
        if category == "down":
            return self._down(layer) or usual
        if category in ("gate", "up") and self.file_type == "IQ3_XS":
            return "IQ3_XXS" if self.layers // 8 <= layer < 7 * self.layers // 8 else usual
        return usual

    def _output(self, usual: str, shape: Sequence[int]) -> str:
        if self.file_type == "MXFP4_MOE" or shape[0] % TYPES[usual].block:
            return "Q8_0"
        if self.file_type in NEEDS_IMATRIX:
            return "Q5_K"
        return "Q8_0" if usual == "Q8_0" else "Q6_K"

    def _embedding(self) -> str | None:
        if self.file_type in ("IQ2_XXS", "IQ2_XS", "IQ1_S", "IQ1_M"):
            return "Q2_K"
        if self.file_type in ("IQ2_S", "IQ2_M", "IQ3_XXS"):
            return "IQ3_S"
        return "Q4_K" if self.file_type in ("TQ1_0", "TQ2_0") else None

    def _two_bits(self, category: str, index: int) -> str | None:
        better = "IQ3_S" if self.file_type in ("IQ2_S", "IQ2_M") else "Q2_K"
        if category in LIKE_VALUES:
            return "Q4_K" if self.grouping >= 4 or self.experts >= 4 else better
        if category == "k" and self.experts == 8:
            return "Q4_K"
        if category == "down":
            return better if index < self.layers // 8 else None
        if category == "attn_output":
            if self.experts == 8:
                return "Q5_K"
            if self.file_type in ("IQ1_S", "IQ1_M"):
                return "IQ2_XXS"
            return "IQ3_S" if self.file_type in ("IQ2_S", "IQ2_M") else None
        return None

    def _values(self, usual: str) -> str:
        index = self.counts.get("all values", 0)
        self.counts["all values"] = index + 1
        kind = self._value_type(index) or usual
        if self.large and kind in ("Q3_K", "Q4_K"):
            kind = "Q5_K"
        return "Q8_0" if self.experts == 8 else kind

    def _value_type(self, index: int) -> str | None:
        grouped = self.grouping >= 4
        match self.file_type:
            case "Q2_K":
                return "Q4_K" if grouped else "Q3_K"
            case "IQ3_XXS":
                return "Q4_K" if grouped else None if self.imatrix else "IQ3_S"
            case "Q2_K_S" | "IQ3_XS" | "IQ3_S":
                return "Q4_K" if grouped else None
            case "IQ3_M":
                return "Q4_K"
            case "Q3_K_M":
                return "Q5_K" if index < 2 else "Q4_K"
            case "Q3_K_L":
                return "Q5_K"
            case "IQ4_NL" | "IQ4_XS":
                return "Q5_K" if grouped else None
            case "Q4_K_M" | "Q5_K_M":
                return "Q6_K" if _more_bits(index, self.values) else None
            case "Q4_K_S":
                return "Q5_K" if index < 4 else None
        return None

    def _keys(self) -> str | None:
        if self.experts == 8:
            return "Q8_0"
        return self._queries()

    def _queries(self) -> str | None:
        return {"IQ3_XS": "IQ3_XXS", "IQ3_XXS": "IQ2_S"}.get(self.file_type)

    def _attention_output(self) -> str | None:
        if self.experts == 8:
            few = ("Q2_K", "IQ3_XS", "IQ3_XXS", "Q3_K_S", "Q3_K_M", "IQ4_NL", "Q4_K_S", "Q4_K_M")
            return "Q5_K" if self.file_type in (*few, "IQ3_S", "IQ3_M", "IQ4_XS") else None
        types = {
            "Q2_K": "Q3_K",
            "IQ3_XXS": "IQ3_S",
            "Q3_K_M": "Q4_K",
            "Q3_K_L": "Q5_K",
            "IQ3_M": "Q4_K",
        }
        return types.get(self.file_type)

    def _down(self, layer: int) -> str | None:
        first = layer < self.layers // 8
        more = _more_bits(layer, self.layers)
        match self.file_type:
            case "Q2_K":
                return "Q3_K"
            case "Q2_K_S":
                return "Q4_K" if first else None
            case "IQ3_XXS" if not self.imatrix:
                return "Q4_K" if first else "Q3_K"
            case "Q3_K_M":
                return "Q5_K" if layer < self.layers // 16 else "Q4_K"
            case "IQ3_M":
                return "Q4_K" if first or (self.experts == 8 and more) else None
            case "Q3_K_L":
                return "Q5_K"
            case "Q4_K_M" | "Q5_K_M":
                return "Q6_K" if more else None
            case "IQ4_NL" | "IQ4_XS":
                return "Q5_K" if first and not self.imatrix else None
            case "Q4_K_S":
                return "Q5_K" if first else None
            case "Q4_0" | "Q5_0":
                better = {"Q4_0": "Q4_1", "Q5_0": "Q5_1"}[self.file_type]
                return better if first and self.imatrix else None
        return None


def quantized_types(
    sizes: Hyperparameters,
    shapes: Mapping[str, Sequence[int]],
    file_type: str,
    imatrix: bool | None = None,
) -> dict[str, TensorType]:
    """The type of every tensor of a model that llama-quantize makes from 32-bit weights.

    Args:
        sizes: of the model.
        shapes: by GGUF's name of a tensor, elements of a row first.
        file_type: a key of `FILE_TYPES`.
        imatrix: whether it is made with an importance matrix; by default, if it has to be.

    Returns:
        A type by name, in the order of `shapes`.
    """
    if imatrix is None:
        imatrix = file_type in NEEDS_IMATRIX
    mixture = _mixture(sizes, shapes, file_type, imatrix)
    types = {}
    for name in sorted(shapes, key=_order):
        shape = shapes[name]
        if not _allows_quantization(name, shape):
            types[name] = TYPES["F32"]
        elif file_type in ("F32", "F16", "BF16"):
            types[name] = TYPES[file_type]
        else:
            types[name] = _fitting(mixture.type_of(name, shape), shape)
    return {name: types[name] for name in shapes}


def _mixture(
    sizes: Hyperparameters, shapes: Mapping[str, Sequence[int]], file_type: str, imatrix: bool
) -> _Mixture:
    heads, kv_heads = sizes.heads[0], sizes.kv_heads[0]
    grouped = heads != kv_heads
    # 80 layers: llama-quantize takes such models for 70B ones, in which 8 heads share values.
    return _Mixture(
        file_type=file_type,
        layers=sizes.all_layers,
        grouping=heads // kv_heads if kv_heads else 0,
        experts=sizes.experts.count if sizes.experts else 1,
        imatrix=imatrix,
        large=sizes.layers == 80 and sizes.architecture in ("llama", "qwen2") and grouped,
        tied="output.weight" not in shapes,
        values=sum(_category(name) in LIKE_VALUES for name in shapes),
        counts={},
    )


def _order(name: str) -> tuple[int, str]:
    return _layer(name, -1), name


def _layer(name: str, default: int) -> int:
    match = re.match(r"blk\.(\d+)\.", name)
    return int(match[1]) if match else default


def _category(name: str) -> str:
    if name == "output.weight":
        return "output"
    if name in ("token_embd.weight", "per_layer_token_embd.weight"):
        return "embedding"
    return next((category for part, category in CATEGORIES if part in name), "other")


def _more_bits(layer: int, layers: int) -> bool:
    """True in the first and the last eighth of the layers, and in a third of those between."""
    return layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2


def _allows_quantization(name: str, shape: Sequence[int]) -> bool:
    matrix = any(size > 1 for size in shape[1:])
    return matrix and name.endswith("weight") and not any(part in name for part in UNQUANTIZED)


def _fitting(name: str, shape: Sequence[int]) -> TensorType:
    """The type, or the one that replaces it for rows of that length."""
    if shape[0] % TYPES[name].block:
        name = FALLBACKS.get(name, "F16")
    return TYPES[name if shape[0] % TYPES[name].block == 0 else "F16"]
