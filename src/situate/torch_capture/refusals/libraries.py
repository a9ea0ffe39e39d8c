"""Remedies for a library's own code, which its user cannot rewrite."""

from __future__ import annotations

import linecache
import re
import sys
from traceback import FrameSummary

from situate.torch_capture.refusals.lines import inside_package

VALUES = "this line of {} depends on the values of a tensor, which capture does not know: {}"
LABELS = "give the model no labels, and compute the loss in the step from what it returns"
OF_NUMBERS = "in the step itself, of numbers (torch.tensor([...]))"
MASKS = (
    f"leave the attention mask out where nothing is padded, or make it {OF_NUMBERS}, or choose "
    'another attention (model.set_attn_implementation("sdpa"), or "eager")'
)
KNOWN = (
    ("layerdrop", "set layerdrop (encoder_layerdrop, decoder_layerdrop) to 0 in its configuration"),
    (
        "expert_",
        "compute experts in another way, where the model has one "
        '(model.set_experts_implementation("batched_mm"))',
    ),
    ("linear_sum_assignment", LABELS),
    ("shifted_input_ids", "give the model decoder_input_ids too, the labels shifted right"),
    ("labels", LABELS),
    (
        "global_attn",
        "leave the attention mask out, where nothing is padded and no token attends to all; or "
        f"make its masks {OF_NUMBERS}",
    ),
    (r"\b(attention_|causal_|padding_)?mask", MASKS),
    ("self.training", "plan inference, where the model does without"),
)
"""By an expression found in the line or just before it, what has been tried and works."""

FILES = (("/loss/", LABELS),)
"""The same by a part of the file's path."""

FUNCTIONS = {
    "get_rope_index": "give the model its position_ids too, as its get_rope_index computes them "
    "outside of the step"
}
"""The same by the function's name."""

BEFORE = 6
"""Lines before one that are looked at too."""

OWN = "use torch.where, or decide it outside the model"
OTHER = (
    f"make what it looks at {OF_NUMBERS}; or look for an argument of the model that leaves it out"
)
LEFT_OUT = "look for an argument of the model that leaves it out, or plan inference if that does"
FUNCTION = (
    "it is {}'s own: where the model is built, put another module in the place of the one that "
    "calls it, or let that infer (eval()) if it does without then; or plan inference"
)


def library_remedy(frame: FrameSummary) -> str:
    """The remedy for a line of a library that depends on values; empty for a line of the user's
    own."""
    inside = inside_package(frame.filename)
    return VALUES.format(_package(inside), _known(frame)) if inside else ""


def value_remedy(frame: FrameSummary | None) -> str:
    """How to do without what a line looks at."""
    return _known(frame) if frame and inside_package(frame.filename) else OWN


def not_ours(frame: FrameSummary | None, said: str) -> str:
    """The addition to a refusal of a library's line that does not name the library."""
    inside = inside_package(frame.filename) if frame else ""
    if not inside or _package(inside) in said:
        return ""
    return f"; the line is {_package(inside)}'s own: {LEFT_OUT}"


def mask_remedy(frame: FrameSummary | None) -> str:
    """The addition to an error of a library's line that reads a mask, which it may read only of a
    model that is captured."""
    inside = inside_package(frame.filename) if frame else ""
    fits = inside and frame is not None and _known(frame) == MASKS
    return f"; the line is {_package(inside)}'s own: {MASKS}" if fits else ""


def function_remedy(kind: type) -> str:
    """The remedy for a library's function with a gradient of its own; empty for the user's own."""
    module = sys.modules.get(kind.__module__)
    inside = inside_package(getattr(module, "__file__", None) or "")
    return FUNCTION.format(_package(inside)) if inside else ""


def _known(frame: FrameSummary) -> str:
    line = frame.lineno or 0
    lines = (linecache.getline(frame.filename, k) for k in range(line, line - 1 - BEFORE, -1))
    code = [text.partition("#")[0] for text in lines]
    by_file = (remedy for part, remedy in FILES if part in frame.filename)
    by_word = (remedy for text in code for word, remedy in KNOWN if re.search(word, text))
    return FUNCTIONS.get(frame.name) or next(by_file, None) or next(by_word, OTHER)


def _package(inside: str) -> str:
    return inside.partition("/")[0].removesuffix(".py")
