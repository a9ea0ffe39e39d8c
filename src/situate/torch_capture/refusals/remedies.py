"""Errors that PyTorch raises during capture, and how to avoid them."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping, Sequence

from situate.torch_capture.refusals.libraries import OWN, library_remedy
from situate.torch_capture.refusals.lines import is_raised_by_user, is_users, user_frame, user_line


class Unsupported(Exception):
    """A step that capture cannot take; the text gives the reason and the remedy."""


VALUES = f"what happens here depends on the values of a tensor, which capture does not know: {OWN}"
SHAPES = (
    "a size or number here depends on the values of a tensor, which capture does not know: use a "
    "mask or a fixed size; where inputs decide it, give them their values (torch.tensor, or small "
    "draws of a torch.Generator with a seed)"
)
READ_OUT = (
    "values are taken out of a tensor here (for NumPy, text or memory addresses), which capture "
    "does not know: compute with torch, or do it outside the step"
)
MASK = (
    "PyTorch looks here whether a mask is causal, and capture knows only masks that the step makes "
    "itself: say so by is_causal= (tgt_is_causal= of a decoder, src_is_causal= and tgt_is_causal= "
    "of nn.Transformer)"
)
PACKED = (
    "a packed sequence has sizes that follow from lengths, which capture does not know: give the "
    "layer the padded sequences, multiply its outputs by a mask of the lengths, and take the last "
    "step of sequence i as outputs[i, lengths[i] - 1]. A bidirectional layer reads the padding "
    "first: reverse each sequence by torch.gather, for a second layer"
)
DEVICE = (
    "this asks for what only another device than the CPU has, on which steps are captured, "
    "wherever they are to run: leave it out, or do it only where x.device.type of an input is "
    "that device's"
)
GENERATOR = (
    "this draws from a torch.Generator of another device than the CPU, on which models are built "
    "and steps captured: leave the generator's device out"
)
GRADIENTS = (
    "the step asks for gradients itself (torch.autograd.grad or torch.func.grad, as a gradient "
    "penalty does), which is not captured: leave them out of the model and the loss"
)
SCALING = (
    "the step scales its loss by a GradScaler, and a placed step updates by the gradients as they "
    "are: return the loss itself, without the scaler (bfloat16 needs none)"
)
DATA = (
    "the step reads a tensor's .data or asks for gradients itself (torch.autograd.grad), which is "
    "not captured: for .data write .detach(), with torch.no_grad() around what changes it; leave "
    "gradients out of the model and the loss"
)
OUTSIDE = (
    "it reads a tensor that neither the model holds nor the inputs have: register it as a buffer "
    "of the model, or give it as an input"
)
BRANCHES = (
    "the step calls an operator that takes functions (torch.cond and its like), which is not "
    "captured: use torch.where, or decide it outside the model"
)
STORED_PARAMETER = (
    "a module keeps a tensor that is computed from its parameters, so it cannot be copied: use "
    "torch.nn.utils.parametrizations in place of torch.nn.utils.weight_norm and its like"
)
COPIED = (
    "a module or tensor is copied here (copy.deepcopy), which is not captured: copy a module "
    "where the model is built, and a tensor by .clone()"
)
SAVED = (
    "a tensor or module is written down here (torch.save, pickle), which is not captured: do it "
    "outside the step"
)
SPARSE = (
    "a sparse tensor is made here, and memory for it cannot be planned: compute with dense tensors"
)
NESTED = (
    "a nested tensor is made here, which is not captured: pad its parts to one length, with a mask"
)
SCRIPT = (
    "this compiles by torch.jit (script or trace), which is not captured: call what it compiles"
)
SUBCLASS = (
    "a tensor is made one of another class here (as_subclass and its like), which is not "
    "captured: use plain tensors"
)
THREADS = (
    "the step computes in a thread of its own, which is not captured: call what it does one after "
    "the other, and the plan says what runs at once"
)
COMMUNICATION = (
    "the step communicates with other processes (torch.distributed), which is not captured: leave "
    "it out, and the plan says what runs where"
)
OVERWRITTEN = (
    "the step writes in place over a tensor that its gradient needs: use what makes a new tensor "
    "there, as y = y + 1 in place of y += 1"
)
UNTRACED = (
    "PyTorch cannot follow what happens here without values: compute it with plain operations on "
    "tensors, or do it outside the step"
)

SELECTED = (
    "a gradient has a size that depends on the values of a tensor, as where the step sets what a "
    "mask selects (x[mask] = y): use torch.where, or in a model of transformers that masks sound "
    "by chance apply_spec_augment=False"
)

_KINDS = {
    "DataDependentOutputException": VALUES,
    "DynamicOutputShapeException": SHAPES,
    "GuardOnDataDependentSymNode": VALUES,
    "PendingUnbackedSymbolNotFound": SHAPES,
    "UserError": VALUES,
}
_PHRASES = {
    "got FakeTensor": SHAPES,
    "SymIntArrayRef expected": SHAPES,
    "ignore_fresh_unbacked_symbols": BRANCHES,
    "unbacked": SHAPES,
    "Unexpected fake buffer": OUTSIDE,
    "Please convert all Tensors to FakeTensors": OUTSIDE,
    "doesn't match mode": DATA,
    "view functorch tensor": GRADIENTS,
    "'Tensor' object has no attribute 'constant'": GRADIENTS,
    ".numpy() is not supported for tensor subclasses": READ_OUT,
    "FakeTensor.__format__": READ_OUT,
    "Cannot access data pointer": READ_OUT,
    "Not available for 'meta' device type": READ_OUT,
    "its data is not allocated yet": READ_OUT,
    "Cannot get CUDA generator": GENERATOR,
    "not linked with support for": DEVICE,
    "Torch not compiled with": DEVICE,
    "accelerator device when none is available": DEVICE,
    "CUDA support": DEVICE,
    "without ATen_cuda library": DEVICE,
    "Tried to instantiate dummy base class": DEVICE,
    "without MPS backend": DEVICE,
    "has no attribute '_cuda_": DEVICE,
    "SparseTensorImpl": SPARSE,
    "layout_impl is only implemented": SPARSE,
    "Creating a new Tensor subclass": SUBCLASS,
    "_nested_tensor": NESTED,
    "modified by an inplace operation": OVERWRITTEN,
    "Can't pickle": SAVED,
}
_PLACES = {
    "/torch/nested/": NESTED,
    "/torch/jit/": SCRIPT,
    "/torch/_higher_order_ops/": BRANCHES,
    "/torch/distributed/": COMMUNICATION,
}
_SIZED = {"/torch/nn/modules/rnn.py": PACKED, "/torch/nn/utils/rnn.py": PACKED}
"""Parts of PyTorch that read sizes out of a tensor for one reason only."""

_INTERNAL = re.compile(
    r"Fake|Functional(Tensor|ize)|[Pp]rox(y|ies)|functorch|Sym(Int|Bool|Float|Node)|\b[us]\d+\b"
    r"|\b(aten|prims)(::|\.)|torch/|torch\._|\.(cpp|h):\d|https?://|meta device|[Dd]ynamo|\bfx\b"
)


def remedy(error: BaseException, handled: BaseException | None = None) -> str:
    """The cause of an error and its remedy; empty for an error of the program's own.

    Args:
        error: raised during capture.
        handled: the error that the caller was handling when the work began, which is no cause.
    """
    if isinstance(error, Unsupported):
        return ""
    for cause in _chain(error, handled):
        if text := _remedy(cause):
            return _of_library(cause) * (text in (VALUES, SHAPES, READ_OUT)) or text
    is_internal = _INTERNAL.search(first_line(error)) and not is_raised_by_user(error)
    return UNTRACED if is_internal else ""


def _of_library(error: BaseException) -> str:
    frame = user_frame(error)
    return library_remedy(frame) if frame else ""


def _chain(error: BaseException, handled: BaseException | None) -> Iterator[BaseException]:
    """The error and its causes, down to one that was handled before."""
    current: BaseException | None = error
    # Chains of causes can be circular.
    for _ in range(20):
        if current is None or current is handled:
            return
        yield current
        current = current.__cause__ or current.__context__


def _remedy(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    if any(frame.name == "_detect_is_causal_mask" for frame in frames):
        return MASK
    # By name, because the modules of these classes are private to PyTorch.
    for kind in type(error).__mro__:
        if kind.__name__ in _KINDS:
            text = _KINDS[kind.__name__]
            # Without a user's line the error comes from the backward pass, which autograd derives.
            if text == SHAPES and not user_line(error):
                return SELECTED
            return _by_place(frames, _SIZED) or text
    if is_raised_by_user(error):
        return ""
    if "support the deepcopy protocol" in str(error):
        return COPIED if user_frame(error) else STORED_PARAMETER
    if isinstance(error, KeyError) and error.args == ("val",) and not user_frame(error):
        return BRANCHES  # a node of a graph that is called has no value
    message = next((text for phrase, text in _PHRASES.items() if phrase in str(error)), "")
    if message == READ_OUT and any(frame.name == "__deepcopy__" for frame in frames):
        return COPIED
    return (
        _by_place(frames, _PLACES) or (message == SHAPES and _by_place(frames, _SIZED)) or message
    )


def _by_place(frames: Sequence[traceback.FrameSummary], places: Mapping[str, str]) -> str:
    """The remedy for the part of PyTorch that the program called last."""
    last = max((i for i, frame in enumerate(frames) if is_users(frame.filename)), default=None)
    below = [] if last is None else [frame.filename for frame in frames[last + 1 :]]
    return next((text for part, text in places.items() if any(part in name for name in below)), "")


def first_line(error: BaseException) -> str:
    """The first line of an error's text, in which a fake tensor is called a tensor."""
    return str(error).strip().partition("\n")[0].replace("FakeTensor", "Tensor")
