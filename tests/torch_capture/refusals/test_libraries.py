"""If a library's own line cannot be captured, the message has a remedy that has been tried and
works."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from traceback import FrameSummary

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from torch.nn import functional as F  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.refusals import libraries  # noqa: E402
from tests.readers.calling import of  # noqa: E402

SIZES = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "vocab_size": 40,
}


def words(model, masked=False):
    ids = torch.ones(2, 8, dtype=torch.int64)
    inputs = {"input_ids": ids, "labels": ids}
    if masked:
        inputs["attention_mask"] = torch.ones_like(ids)
    return model, inputs, lambda model, **batch: model(**batch, use_cache=False).loss


def experts(how=None):
    config = transformers.MixtralConfig(
        **SIZES, num_key_value_heads=2, num_local_experts=2, max_position_embeddings=16
    )
    model = transformers.MixtralForCausalLM(config)
    if how:
        model.set_experts_implementation(how)
    return words(model)


def attention(how):
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES))
    model.set_attn_implementation(how)
    return words(model, masked=True)


def sound(labels=True, **options):
    config = transformers.Wav2Vec2Config(
        **SIZES,
        conv_dim=(8,),
        conv_stride=(5,),
        conv_kernel=(10,),
        num_feat_extract_layers=1,
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
        mask_time_length=2,
        **options,
    )

    def loss(model, x, y):
        out = model(x).logits.log_softmax(-1).transpose(0, 1)
        return F.ctc_loss(out, y, (len(out),) * 2, (3,) * 2)

    model = transformers.Wav2Vec2ForCTC(config)
    inputs = torch.randn(2, 300), torch.ones(2, 3, dtype=torch.int64)
    return model, inputs, (lambda model, x, y: model(x, labels=y).loss) if labels else loss


def reversed_words():
    config = transformers.ReformerConfig(
        hidden_size=16,
        feed_forward_size=16,
        num_attention_heads=2,
        attention_head_size=8,
        vocab_size=40,
        attn_layers=["local"],
        axial_pos_embds=False,
        local_attn_chunk_length=4,
        is_decoder=True,
        max_position_embeddings=16,
        pad_token_id=0,
    )
    return words(transformers.ReformerModelWithLMHead(config))


def boxes():
    config = transformers.YolosConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=[32, 32],
        patch_size=16,
        num_detection_tokens=4,
        num_labels=3,
    )

    def loss(model, pixel_values):
        out = model(pixel_values)
        return out.logits.square().mean() + out.pred_boxes.square().mean()

    return transformers.YolosForObjectDetection(config), (torch.randn(1, 3, 32, 32),), loss


# Each remedy for a library's line has been tried on a model of it.
REMEDIES = [
    (
        lambda: experts("eager"),
        'set_experts_implementation("batched_mm")',
        lambda: experts("batched_mm"),
    ),
    (
        lambda: attention("flex_attention"),
        'another attention (model.set_attn_implementation("sdpa")',
        lambda: attention("sdpa"),
    ),
    (
        lambda: sound(),
        "give the model no labels, and compute the loss in the step",
        lambda: sound(labels=False, layerdrop=0.0, apply_spec_augment=False),
    ),
    (
        lambda: sound(labels=False),
        "set layerdrop (encoder_layerdrop, decoder_layerdrop) to 0 in its configuration",
        lambda: sound(labels=False, layerdrop=0.0, apply_spec_augment=False),
    ),
    (
        lambda: sound(labels=False, layerdrop=0.0),
        "apply_spec_augment=False",
        lambda: sound(labels=False, layerdrop=0.0, apply_spec_augment=False),
    ),
]


@pytest.mark.parametrize(("build", "remedy", "remedied"), REMEDIES)
def test_a_remedy_helps(build, remedy, remedied):
    with pytest.raises(SituateError, match=re.escape(remedy)):
        capture(build, name="net")
    assert capture(remedied, name="net").ops


def test_losses_of_a_library_that_match_boxes_are_left_to_the_step():
    line = FrameSummary("/lib/site-packages/transformers/loss/detection.py", 1, "loss")
    assert libraries.library_remedy(line).endswith(libraries.LABELS)
    assert capture(boxes, name="net").ops


# The remedy depends on the library's source line.
def remedy_at(file, text):
    """The remedy for the first line of a file of transformers that has a text in it."""
    path = Path(transformers.__file__).parent / "models" / file
    lines = path.read_text().splitlines()
    number = next(k for k, line in enumerate(lines, start=1) if text in line)
    return libraries.library_remedy(FrameSummary(str(path), number, "forward"))


def test_experts_that_have_one_implementation_are_to_be_replaced():
    dense = remedy_at("dbrx/modeling_dbrx.py", "in expert_hit:")
    assert "put a module in the place of its DbrxExperts that computes every expert" in dense
    assert remedy_at("mixtral/modeling_mixtral.py", "in expert_hit:").endswith(libraries.EXPERTS)


def test_a_module_that_looks_only_in_training_may_infer_alone():
    remedy = remedy_at("autoformer/modeling_autoformer.py", "shifts=-int(top_k_delays_index[i])")
    assert "let the modules of class AutoformerAttention alone infer" in remedy


def test_state_of_a_library_has_the_remedy_that_was_tried():
    line = FrameSummary("/lib/site-packages/lib/model.py", 1, "forward")
    assert "set rescale_every to 0" in libraries.not_ours(
        line, "what it keeps in 'layers_are_rescaled'"
    )
    assert libraries.not_ours(line, "something else").endswith(libraries.LEFT_OUT)


def test_what_a_library_does_only_in_training_leaves_inference():
    with pytest.raises(SituateError, match=r"the line is transformers's own: plan inference"):
        capture(reversed_words, name="net")
    assert capture(reversed_words, training=False, name="net").ops


def test_the_line_is_named_by_its_place_in_the_library():
    place = r"^net: capturing the step: transformers/models/mixtral/modeling_mixtral\.py:\d+: this"
    with pytest.raises(SituateError, match=place):
        capture(lambda: experts("eager"), name="net")


@pytest.fixture
def library(tmp_path):
    """A module of another package."""
    path = tmp_path / "site-packages" / "lib" / "deciding.py"
    path.parent.mkdir(parents=True)
    path.write_text("def pick(x, n):\n    return x if n.sum() > 0 else -x\n")
    spec = importlib.util.spec_from_file_location("deciding", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_any_other_line_has_a_remedy_that_holds_everywhere(library):
    with pytest.raises(SituateError, match=re.escape(libraries.OTHER)):
        of(lambda model, x: library.pick(model.layer(x), x))
    assert of(lambda model, x: library.pick(model.layer(x), torch.tensor([1.0, 2.0]))).ops
