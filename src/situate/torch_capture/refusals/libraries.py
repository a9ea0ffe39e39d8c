"""Remedies for errors in a library's code, which the user cannot rewrite."""

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
EXPERTS = 'compute experts in another way (model.set_experts_implementation("batched_mm"))'
DENSE = (
    "where the model is built, put a module in the place of its {} that computes every expert for "
    "every token, and takes it times 0 where it is not chosen"
)
EVAL = (
    "let the modules of class {} alone infer: model.train() where the model is built, then eval() "
    "of these, whose parameters are trained all the same; or plan inference"
)
BUFFERS = (
    "take the integers that it looks at out of the buffers of its {} modules, and set them in the "
    "step as attributes, of numbers (torch.tensor(...))"
)
BOXES = (
    "boxes are chosen by their values: plan the parts that compute, model.backbone with model.head "
    "(model.rpn.head) on a batch of images of one size, and do the rest on what they return "
    "outside of the step; for training, match anchors to boxes there, too"
)
PICTURES = (
    "give the model image_hidden_states in place of pixel_values, and compute them in the step: "
    "connector(vision_model(pixel_values=..., patch_attention_mask=...).last_hidden_state)"
)
BY_WORD = (
    ("layerdrop", "set layerdrop (encoder_layerdrop, decoder_layerdrop) to 0 in its configuration"),
    ("expert_", EXPERTS),
    ("linear_sum_assignment", LABELS),
    ("shifted_input_ids", "give the model decoder_input_ids too, the labels shifted right"),
    ("labels", LABELS),
    (
        "global_attn",
        "leave the attention mask out, where nothing is padded and no token attends to all; or "
        f"make its masks {OF_NUMBERS}",
    ),
    (r"\b(attention_|causal_|padding_)?mask", MASKS),
    ("self.training", EVAL),
)
"""Tested remedies, by an expression in the source line or just before it."""

BY_FILE = (
    ("/loss/", LABELS),
    ("/idefics3/", PICTURES),
    ("/encodec/", BUFFERS),
    ("torchvision/models/detection/", BOXES),
    ("torchvision/ops/", BOXES),
)
"""Tested remedies, by a part of the file's path."""

BY_FUNCTION = {
    "get_rope_index": "give the model its position_ids too, as its get_rope_index computes them "
    "outside of the step"
}
"""Tested remedies, by the function's name."""

IMPLEMENTATIONS = "use_experts_implementation"
"""A word in the files of models whose experts can be computed in several ways."""

BY_MESSAGE = (
    (
        "layers_are_rescaled",
        "set rescale_every to 0 in its configuration, or call the model once where it is built, "
        "when it infers (eval()): it scales its layers then, and not again",
    ),
    (
        "attention_seed",
        "plan inference: in training, its layers compute their gradients themselves, from seeds of "
        "their own",
    ),
)
"""Tested remedies, by a part of the refusal or of the source line."""

BEFORE = 6
"""Lines before the source line that are searched, too."""

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
    """The remedy for a library's line that depends on values; empty for a line of the user's."""
    inside = inside_package(frame.filename)
    return VALUES.format(_package(inside), _remedy(frame)) if inside else ""


def value_remedy(frame: FrameSummary | None) -> str:
    """The way to avoid a read of values in a line."""
    return _remedy(frame) if frame and inside_package(frame.filename) else OWN


def not_ours(frame: FrameSummary | None, message: str) -> str:
    """The addition to a refusal of a library's line that does not name the library."""
    inside = inside_package(frame.filename) if frame else ""
    if not inside or _package(inside) in message:
        return ""
    line = linecache.getline(frame.filename, frame.lineno or 0) if frame else ""
    remedy = next((remedy for part, remedy in BY_MESSAGE if part in message + line), LEFT_OUT)
    return f"; the line is {_package(inside)}'s own: {remedy}"


def mask_remedy(frame: FrameSummary | None) -> str:
    """The addition to an error in a library's line that reads a mask; empty for other lines."""
    inside = inside_package(frame.filename) if frame else ""
    fits = inside and frame is not None and _remedy(frame) == MASKS
    return f"; the line is {_package(inside)}'s own: {MASKS}" if fits else ""


def function_remedy(kind: type) -> str:
    """The remedy for a library's autograd function; empty for the user's own."""
    module = sys.modules.get(kind.__module__)
    inside = inside_package(getattr(module, "__file__", None) or "")
    return FUNCTION.format(_package(inside)) if inside else ""


def _remedy(frame: FrameSummary) -> str:
    line = frame.lineno or 0
    # The line itself comes first, so that the nearest match wins.
    lines = (linecache.getline(frame.filename, k) for k in range(line, line - 1 - BEFORE, -1))
    code = [text.partition("#")[0] for text in lines]
    by_file = (remedy for part, remedy in BY_FILE if part in frame.filename)
    by_word = (
        remedy
        for text in code
        for word, remedy in BY_WORD
        if re.search(word, text) and (remedy != MASKS or _mentions(frame.filename, "attention"))
    )
    first = BY_FUNCTION.get(frame.name) or next(by_file, None) or next(by_word, OTHER)
    lacks = first == EXPERTS and not _mentions(frame.filename, IMPLEMENTATIONS)
    return (DENSE if lacks else first).replace("{}", _class_around(frame))


def _mentions(filename: str, word: str) -> bool:
    return any(word in text for text in linecache.getlines(filename))


def _class_around(frame: FrameSummary) -> str:
    """The name of the class that a line is in."""
    above = linecache.getlines(frame.filename)[: frame.lineno or 0]
    matches = (re.match(r"class (\w+)", text) for text in reversed(above))
    return next((match[1] for match in matches if match), "the model")


def _package(inside: str) -> str:
    return inside.partition("/")[0].removesuffix(".py")
