"""Element types of tensors in GGUF files: blocks of elements and the bytes of a block.

Numbers and sizes are those of `ggml.h` in llama.cpp and, from 97 on, in ik_llama.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from situate.errors import ReadError, nearest


@dataclass(frozen=True)
class TensorType:
    """A way to store the elements of a tensor.

    Attributes:
        name: as llama.cpp prints it, in capitals: `Q4_K`.
        number: in GGUF files; -1 for types of safetensors files alone.
        block: elements that are stored together; rows are whole blocks.
        size: bytes of a block.
        row_head: bytes in front of the blocks of each row (ik_llama.cpp).
        tensor_head: bytes beside the rows of a tensor.
    """

    name: str
    number: int
    block: int
    size: int
    row_head: int = 0
    tensor_head: int = 0

    @property
    def bits(self) -> float:
        """Bits of an element, without heads."""
        return 8 * self.size / self.block

    @property
    def quantized(self) -> bool:
        """True if elements share a block."""
        return self.block > 1

    def row_bytes(self, elements: int) -> int:
        """Bytes of a row.

        Raises:
            ReadError: the row is no whole number of blocks.
        """
        if elements % self.block:
            raise ReadError(
                f"rows of {elements} elements, and {self.name} needs a multiple of {self.block}"
            )
        return elements // self.block * self.size + self.row_head

    def tensor_bytes(self, shape: Sequence[int]) -> int:
        """Bytes of a tensor; `shape` begins with the length of a row, as in GGUF.

        Raises:
            ReadError: its rows are no whole number of blocks.
        """
        return self.row_bytes(shape[0]) * prod(shape[1:]) + self.tensor_head


_SIZES = """
F32 0 1 4, F16 1 1 2, Q4_0 2 32 18, Q4_1 3 32 20, Q5_0 6 32 22, Q5_1 7 32 24, Q8_0 8 32 34,
Q8_1 9 32 36, Q2_K 10 256 84, Q3_K 11 256 110, Q4_K 12 256 144, Q5_K 13 256 176, Q6_K 14 256 210,
Q8_K 15 256 292, IQ2_XXS 16 256 66, IQ2_XS 17 256 74, IQ3_XXS 18 256 98, IQ1_S 19 256 50,
IQ4_NL 20 32 18, IQ3_S 21 256 110, IQ2_S 22 256 82, IQ4_XS 23 256 136, I8 24 1 1, I16 25 1 2,
I32 26 1 4, I64 27 1 8, F64 28 1 8, IQ1_M 29 256 56, BF16 30 1 2, TQ1_0 34 256 54, TQ2_0 35 256 66,
I2_S 36 4 1 0 32, MXFP4 39 32 17, NVFP4 40 64 36, Q1_0 41 128 18, Q2_0 42 64 18,
Q6_0 133 32 26, IQ1_BN 134 64 13 2, IQ2_BN 135 64 16 4, IQ2_K 137 256 76, IQ3_K 138 256 110,
IQ4_K 139 256 144, IQ5_K 140 256 176, IQ6_K 141 256 212, IQ4_KS 144 256 136 4, IQ2_KS 145 256 70 2,
IQ4_KSS 146 256 128 4, Q8_KV 151 32 32 8, IQ5_KS 152 256 168 4, IQ2_KT 153 256 68 4,
IQ3_KT 154 256 100 4, IQ4_KT 155 256 128 4, IQ3_KS 156 256 102 2, IQ2_KL 157 256 86 2,
IQ1_KT 158 256 56 4, Q4_0_R8 202 32 18, Q5_0_R4 206 32 22, Q8_0_R8 208 32 34, Q2_K_R4 210 256 84,
Q3_K_R4 211 256 110, Q4_K_R4 212 256 144, Q5_K_R4 213 256 176, Q6_K_R4 214 256 210,
IQ2_XXS_R4 216 256 66, IQ2_XS_R4 217 256 74, IQ3_XXS_R4 218 256 98, IQ1_S_R4 219 32 6 2,
IQ4_NL_R4 220 32 18, IQ3_S_R4 221 256 110, IQ2_S_R4 222 256 82, IQ4_XS_R8 223 256 136,
IQ1_M_R4 229 32 7 2, BF16_R16 230 1 2, Q6_0_R4 233 32 26, IQ2_BN_R4 335 64 16 4,
IQ2_K_R4 337 256 76, IQ3_K_R4 338 256 110, IQ4_K_R4 339 256 144, IQ5_K_R4 340 256 176,
IQ4_KS_R4 344 256 136 4, IQ5_KS_R4 352 256 168 4, Q8_KV_R8 398 32 32 4, Q8_K_R8 399 256 258,
F8_E4M3 -1 1 1, F8_E5M2 -1 1 1, F8_E8M0 -1 1 1, U8 -1 1 1, U16 -1 1 2, U32 -1 1 4, U64 -1 1 8,
BOOL -1 1 1
"""
"""Name, number, elements and bytes of a block, then bytes of a row's and of a tensor's head."""


def _tensor_type(row: str) -> TensorType:
    name, *figures = row.split()
    return TensorType(name, *map(int, figures))


TYPES = {entry.name: entry for entry in map(_tensor_type, _SIZES.split(","))}
"""All types by name."""

BY_NUMBER = {entry.number: entry for entry in TYPES.values() if entry.number >= 0}
"""The types of GGUF files by number."""

OBSOLETE = {
    4: "Q4_2",
    5: "Q4_3",
    31: "Q4_0_4_4",
    32: "Q4_0_4_8",
    33: "Q4_0_8_8",
    37: "IQ4_NL_4_4",
    38: "IQ4_NL_4_8",
}
"""Numbers of types that llama.cpp no longer reads."""


def numbered_type(number: int) -> TensorType:
    """The type with a number in GGUF files.

    Raises:
        ReadError: llama.cpp has no such type, or no longer reads it.
    """
    if number in BY_NUMBER:
        return BY_NUMBER[number]
    if number in OBSOLETE:
        raise ReadError(f"type {OBSOLETE[number]}, which llama.cpp no longer reads: quantise again")
    raise ReadError(f"type {number}, which neither llama.cpp nor ik_llama.cpp has")


def named_type(name: str) -> TensorType:
    """The type with a name, in letters of either case.

    Raises:
        ReadError: no type has that name.
    """
    try:
        return TYPES[name.upper()]
    except KeyError:
        raise ReadError(f"unknown tensor type {name!r}{nearest(name.upper(), TYPES)}") from None
