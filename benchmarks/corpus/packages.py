"""Networks of torchvision and timm, and adapters of peft."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.corpus.configuration import BATCH, Built, Configuration, classes, pictures, returned
from benchmarks.corpus.decoders import GPT, GROUPED, HEADS, MIXTURES, causal
from benchmarks.corpus.encoders import SMALL, T5, sentence, translated
from benchmarks.corpus.vision import PATCHES, classified

CLASSES = 10


def cross_entropy(model: torch.nn.Module, pixels: torch.Tensor, labels: torch.Tensor) -> Any:
    """The loss of a classifier, and of those beside it that some networks have."""
    found: Any = model(pixels)
    if isinstance(found, tuple):
        return sum(F.cross_entropy(part, labels) for part in found)
    return F.cross_entropy(found, labels)


def of_pixels(model: torch.nn.Module, pixels: torch.Tensor, labels: torch.Tensor) -> Any:
    """The loss of a classifier of every pixel."""
    found: Any = model(pixels)
    return F.cross_entropy(found["out"], labels)


def of_boxes(model: torch.nn.Module, pixels: list[torch.Tensor], targets: Any) -> Any:
    """The losses of a detector in sum."""
    found: Any = model(pixels, targets)
    return sum(found.values())


def of_flow(model: torch.nn.Module, one: torch.Tensor, other: torch.Tensor, rounds: int) -> Any:
    """A loss of the flows from one picture to another."""
    found: Any = model(one, other, rounds)
    return sum(flow.square().mean() for flow in found)


def _classifier(make: Callable[[], torch.nn.Module], pixels: int, training: bool) -> Built:
    model = make().train(training)
    inputs = (pictures(pixels),)
    return model, (*inputs, classes(CLASSES)) if training else inputs, cross_entropy


TORCHVISION: dict[str, tuple[int, dict[str, Any]]] = {
    "alexnet": (64, {}),
    "vgg11_bn": (32, {}),
    "resnet18": (64, {}),
    "resnet50": (64, {}),
    "resnext50_32x4d": (64, {}),
    "densenet121": (64, {}),
    "googlenet": (64, {"aux_logits": False}),
    "inception_v3": (299, {}),
    "mobilenet_v2": (64, {}),
    "mobilenet_v3_small": (64, {}),
    "mnasnet0_5": (64, {}),
    "efficientnet_b0": (64, {}),
    "shufflenet_v2_x0_5": (64, {}),
    "squeezenet1_1": (64, {}),
    "regnet_y_400mf": (64, {}),
    "convnext_tiny": (64, {}),
    "swin_t": (64, {}),
    "swin_v2_t": (64, {}),
    "vit_b_32": (64, {"image_size": 64}),
}
"""Pixels and settings by the function that makes the network."""

TIMM: dict[str, tuple[int, dict[str, Any]]] = {
    "resnet26d": (64, {}),
    "seresnet18": (64, {}),
    "res2net50_26w_4s": (64, {}),
    "efficientnet_lite0": (64, {}),
    "mobilenetv3_small_050": (64, {}),
    "mobilenetv4_conv_small": (64, {}),
    "ghostnet_050": (64, {}),
    "repvgg_a0": (64, {}),
    "regnety_002": (64, {}),
    "nfnet_l0": (64, {}),
    "convnext_atto": (64, {}),
    "convnextv2_atto": (64, {}),
    "vit_tiny_patch16_224": (64, {"img_size": 64, "depth": 2}),
    "deit_tiny_distilled_patch16_224": (64, {"img_size": 64, "depth": 2}),
    "eva02_tiny_patch14_224": (56, {"img_size": 56, "depth": 2}),
    "cait_xxs24_224": (64, {"img_size": 64, "depth": 2}),
    "xcit_nano_12_p16_224": (64, {"img_size": 64, "depth": 2}),
    "swin_tiny_patch4_window7_224": (
        64,
        {"img_size": 64, "window_size": 2, "depths": (1, 1, 1, 1)},
    ),
    "mixer_s32_224": (64, {"img_size": 64}),
    "resmlp_12_224": (64, {"img_size": 64}),
    "coatnet_nano_rw_224": (64, {"img_size": 64}),
    "mobilevit_xxs": (64, {}),
    "edgenext_xx_small": (64, {}),
    "twins_svt_small": (64, {"img_size": 64, "depths": (1, 1, 1, 1)}),
    "fastvit_t8": (64, {}),
    "hrnet_w18_small": (64, {}),
}
"""The same of timm."""


def of_torchvision(name: str, pixels: int, settings: Mapping[str, Any]) -> Configuration:
    """A classifier of torchvision."""

    def build(training: bool) -> Built:
        from torchvision import models

        make = getattr(models, name)
        return _classifier(
            lambda: make(weights=None, num_classes=CLASSES, **settings), pixels, training
        )

    return Configuration(f"torchvision.{name}", "torchvision", "vision", build)


def of_timm(name: str, pixels: int, settings: Mapping[str, Any]) -> Configuration:
    """A classifier of timm."""

    def build(training: bool) -> Built:
        import timm

        return _classifier(
            lambda: timm.create_model(name, num_classes=CLASSES, **settings), pixels, training
        )

    return Configuration(f"timm.{name}", "timm", "vision", build)


def segmenter(training: bool) -> Built:
    """DeepLabV3 on MobileNetV3."""
    from torchvision.models.segmentation import deeplabv3_mobilenet_v3_large

    model = deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=CLASSES)
    inputs = (pictures(64),)
    labels = classes(CLASSES, BATCH, 64, 64)
    return model.train(training), (*inputs, labels) if training else inputs, of_pixels


def videos(training: bool) -> Built:
    """A ResNet over space and time."""
    from torchvision.models.video import r3d_18

    model = r3d_18(weights=None, num_classes=CLASSES).train(training)
    inputs = (torch.randn(BATCH, 3, 4, 32, 32),)
    return model, (*inputs, classes(CLASSES)) if training else inputs, cross_entropy


def flows(training: bool) -> Built:
    """RAFT, which follows points from one picture to the next."""
    from torchvision.models.optical_flow import raft_small

    model = raft_small(weights=None).train(training)
    return model, (pictures(128), pictures(128), 2), of_flow


def detector(name: str) -> Callable[[bool], Built]:
    """A detector of torchvision with MobileNetV3 or ResNet as its backbone."""

    def build(training: bool) -> Built:
        from torchvision.models import detection

        make = getattr(detection, name)
        sizes = {"min_size": 64, "max_size": 64} if "ssd" not in name else {}
        model = make(weights=None, weights_backbone=None, num_classes=CLASSES, **sizes)
        pixels = [torch.rand(3, 64, 64) for _ in range(BATCH)]
        found = torch.tensor([[4.0, 4.0, 30.0, 30.0], [20.0, 10.0, 60.0, 50.0]])
        targets = [{"boxes": found, "labels": classes(CLASSES, 2)} for _ in range(BATCH)]
        return model.train(training), (pixels, targets) if training else (pixels,), of_boxes

    return build


PLAIN: dict[str, tuple[str, Any, Mapping[str, Any]]] = {
    "llama": ("LlamaForCausalLM", causal, GROUPED),
    "qwen3": ("Qwen3ForCausalLM", causal, HEADS),
    "mixtral": ("MixtralForCausalLM", causal, MIXTURES["MixtralForCausalLM"]),
    "gpt2": ("GPT2LMHeadModel", causal, GPT),
    "bert": ("BertForSequenceClassification", sentence, SMALL),
    "t5": ("T5ForConditionalGeneration", translated, T5),
    "vit": ("ViTForImageClassification", classified, PATCHES),
}

ADAPTERS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("LoraConfig", "lora", "llama", {"target_modules": ["q_proj", "v_proj"]}),
    ("LoraConfig", "dora", "llama", {"target_modules": ["q_proj", "v_proj"], "use_dora": True}),
    ("LoraConfig", "lora", "qwen3", {"target_modules": "all-linear"}),
    ("LoraConfig", "lora", "mixtral", {"target_modules": ["q_proj", "k_proj", "v_proj"]}),
    ("LoraConfig", "lora", "gpt2", {"target_modules": ["c_attn"], "fan_in_fan_out": True}),
    ("LoraConfig", "lora", "bert", {"target_modules": ["query", "value"], "task_type": "SEQ_CLS"}),
    ("LoraConfig", "lora", "t5", {"target_modules": ["q", "v"], "task_type": "SEQ_2_SEQ_LM"}),
    ("LoraConfig", "lora", "vit", {"target_modules": ["q_proj", "v_proj", "query", "value"]}),
    (
        "IA3Config",
        "ia3",
        "llama",
        {"target_modules": ["k_proj", "v_proj"], "feedforward_modules": []},
    ),
    ("LoHaConfig", "loha", "llama", {"target_modules": ["q_proj", "v_proj"]}),
    ("PromptTuningConfig", "prompts", "llama", {"num_virtual_tokens": 4, "task_type": "CAUSAL_LM"}),
    ("PrefixTuningConfig", "prefix", "llama", {"num_virtual_tokens": 4, "task_type": "CAUSAL_LM"}),
]


def of_peft(kind: str, name: str, of: str, settings: Mapping[str, Any]) -> Configuration:
    """A model of transformers of which an adapter alone is trained."""

    def build(training: bool) -> Built:
        import peft
        import transformers

        model, inputs, plain = PLAIN[of]
        made = getattr(transformers, model)
        config = made.config_class(**plain)
        adapted: Any = peft.get_peft_model(made(config), getattr(peft, kind)(**settings))
        return adapted.train(training), dict(inputs(config, training)), returned

    return Configuration(f"peft.{name}_{of}", "peft", "adapter", build)


def configurations() -> list[Configuration]:
    """All of this module."""
    return [
        *(of_torchvision(name, *rest) for name, rest in TORCHVISION.items()),
        Configuration("torchvision.deeplabv3", "torchvision", "vision", segmenter),
        Configuration("torchvision.r3d_18", "torchvision", "vision", videos),
        Configuration("torchvision.raft_small", "torchvision", "vision", flows),
        *(
            Configuration(f"torchvision.{name}", "torchvision", "detection", detector(name))
            for name in ("retinanet_resnet50_fpn", "fasterrcnn_mobilenet_v3_large_320_fpn")
        ),
        *(of_timm(name, *rest) for name, rest in TIMM.items()),
        *(of_peft(*entry) for entry in ADAPTERS),
    ]
