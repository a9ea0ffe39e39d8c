"""Vision models of transformers: pictures and videos to classes, boxes, masks and depths."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.corpus.configuration import (
    BATCH,
    PIXELS,
    Configuration,
    Inputs,
    classes,
    pictures,
    transformers_model,
)

LAYERS = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
PATCHES = LAYERS | {"image_size": PIXELS, "patch_size": 8}
STAGES = {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 32, 48, 64]}
WINDOWS = {
    "image_size": 64,
    "embed_dim": 16,
    "depths": [1, 1, 1, 1],
    "num_heads": [2, 2, 4, 4],
    "window_size": 2,
}
RESNET = {
    "model_type": "resnet",
    "embedding_size": 8,
    "hidden_sizes": [8, 16, 24, 32],
    "depths": [1, 1, 1, 1],
    "layer_type": "basic",
}
DETECTOR = {
    "num_labels": 5,
    "num_queries": 6,
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
}
VIDEO = PATCHES | {"num_frames": 4}


def classified(config: Any, training: bool) -> dict[str, Any]:
    """Pictures, each of a class."""
    pixels = {"pixel_values": pictures(_pixels(config))}
    return pixels | {"labels": classes(config.num_labels)} if training else pixels


def unlabelled(config: Any, training: bool) -> dict[str, Any]:
    """Pictures, which a model learns to fill in."""
    return {"pixel_values": pictures(_pixels(config))}


def segmented(config: Any, training: bool) -> dict[str, Any]:
    """Pictures of 64 pixels, each pixel of a class."""
    pixels = {"pixel_values": pictures(64)}
    return pixels | {"labels": classes(config.num_labels, BATCH, 64, 64)} if training else pixels


def measured(config: Any, training: bool) -> dict[str, Any]:
    """Pictures of which the depth is asked."""
    return {"pixel_values": pictures(56)}


def detected(config: Any, training: bool) -> dict[str, Any]:
    """Pictures with two objects each."""
    pixels = {"pixel_values": pictures(64)}
    return pixels | {"labels": [_objects(), _objects()]} if training else pixels


def masks(config: Any, training: bool) -> dict[str, Any]:
    """Pictures with two objects each, and where those are."""
    pixels = {"pixel_values": pictures(64)}
    found = {
        "mask_labels": [(torch.rand(2, 64, 64) > 0.5).float() for _ in range(BATCH)],
        "class_labels": [classes(config.num_labels, 2) for _ in range(BATCH)],
    }
    return pixels | found if training else pixels


def video(config: Any, training: bool) -> dict[str, Any]:
    """Videos, each of a class."""
    frames = {"pixel_values": torch.randn(BATCH, config.num_frames, 3, PIXELS, PIXELS)}
    return frames | {"labels": classes(config.num_labels)} if training else frames


def pointed(config: Any, training: bool) -> dict[str, Any]:
    """Pictures and a point of an object in each."""
    size = config.vision_config.image_size
    points = torch.rand(BATCH, 1, 1, 2) * size
    return {"pixel_values": pictures(size), "input_points": points}


def _pixels(config: Any) -> int:
    size = getattr(config, "image_size", 64)
    return size if isinstance(size, int) and size <= 64 else 64


def _objects() -> dict[str, torch.Tensor]:
    corners = torch.rand(2, 4) * 0.4 + 0.1
    return {"class_labels": classes(5, 2), "boxes": corners}


def masks_found(model: torch.nn.Module, **batch: Any) -> Any:
    """A loss of the masks that a model finds."""
    found: Any = model(**batch)
    return found.pred_masks.square().mean()


def depths_found(model: torch.nn.Module, **batch: Any) -> Any:
    """A loss of the depths that a model finds."""
    found: Any = model(**batch)
    return found.predicted_depth.square().mean()


CLASSIFIERS: dict[str, dict[str, Any]] = {
    "ViTForImageClassification": PATCHES,
    "DeiTForImageClassification": PATCHES,
    "BeitForImageClassification": PATCHES | {"use_relative_position_bias": True},
    "SwinForImageClassification": WINDOWS,
    "Swinv2ForImageClassification": WINDOWS,
    "ConvNextForImageClassification": STAGES,
    "ConvNextV2ForImageClassification": STAGES,
    "ResNetForImageClassification": RESNET,
    "RegNetForImageClassification": STAGES | {"embedding_size": 8, "groups_width": 8},
    "MobileNetV2ForImageClassification": {"image_size": 64, "depth_multiplier": 0.25},
    "MobileViTForImageClassification": {
        "image_size": 64,
        "hidden_sizes": [16, 24, 32],
        "neck_hidden_sizes": [8, 8, 16, 16, 24, 32, 64],
    },
    "EfficientNetForImageClassification": {
        "image_size": 64,
        "width_coefficient": 0.25,
        "depth_coefficient": 0.5,
        "hidden_dim": 320,
    },
    "Dinov2ForImageClassification": LAYERS | {"image_size": PIXELS, "patch_size": 8},
    "CvtForImageClassification": {
        "embed_dim": [16, 32, 48],
        "num_heads": [1, 2, 3],
        "depth": [1, 2, 3],
    },
    "LevitForImageClassification": {
        "image_size": 64,
        "patch_size": 16,
        "hidden_sizes": [16, 32, 48],
        "num_attention_heads": [2, 2, 3],
        "depths": [1, 1, 1],
        "key_dim": [8, 8, 8],
    },
    "PvtV2ForImageClassification": STAGES
    | {"image_size": 64, "num_attention_heads": [1, 2, 3, 4], "mlp_ratios": [2, 2, 2, 2]},
    "PoolFormerForImageClassification": STAGES,
    "HieraForImageClassification": {
        "image_size": [64, 64],
        "embed_dim": 16,
        "depths": [1, 1, 1, 1],
        "num_heads": [1, 2, 2, 4],
        "masked_unit_size": [8, 8],
    },
}

OTHERS: list[tuple[str, Inputs, dict[str, Any], Any]] = [
    (
        "ViTMAEForPreTraining",
        unlabelled,
        PATCHES
        | {"decoder_hidden_size": 32, "decoder_intermediate_size": 64}
        | {"decoder_num_hidden_layers": 1, "decoder_num_attention_heads": 4},
        None,
    ),
    (
        "SegformerForSemanticSegmentation",
        segmented,
        STAGES
        | {"num_attention_heads": [1, 2, 3, 4], "mlp_ratios": [2, 2, 2, 2]}
        | {"decoder_hidden_size": 32, "num_labels": 5},
        None,
    ),
    (
        "UperNetForSemanticSegmentation",
        segmented,
        {
            "backbone_config": {
                "model_type": "convnext",
                "out_features": ["stage1", "stage2", "stage3", "stage4"],
            }
            | STAGES,
            "hidden_size": 32,
            "auxiliary_in_channels": 48,
            "auxiliary_channels": 16,
            "num_labels": 5,
        },
        None,
    ),
    (
        "DPTForDepthEstimation",
        measured,
        PATCHES
        | {
            "image_size": 56,
            "num_hidden_layers": 4,
            "backbone_out_indices": [0, 1, 2, 3],
            "neck_hidden_sizes": [8, 16, 24, 32],
            "fusion_hidden_size": 16,
        },
        depths_found,
    ),
    (
        "DepthAnythingForDepthEstimation",
        measured,
        {
            "backbone_config": LAYERS
            | {
                "model_type": "dinov2",
                "image_size": 56,
                "patch_size": 14,
                "num_hidden_layers": 4,
                "out_indices": [1, 2, 3, 4],
                "reshape_hidden_states": False,
                "apply_layernorm": True,
            },
            "reassemble_hidden_size": 64,
            "neck_hidden_sizes": [8, 16, 24, 32],
            "fusion_hidden_size": 16,
            "head_hidden_size": 8,
        },
        depths_found,
    ),
    (
        "DetrForObjectDetection",
        detected,
        DETECTOR | {"backbone_config": RESNET | {"out_features": ["stage4"]}},
        None,
    ),
    (
        "DeformableDetrForObjectDetection",
        detected,
        DETECTOR
        | {
            "backbone_config": RESNET | {"out_features": ["stage2", "stage3", "stage4"]},
            "num_feature_levels": 3,
            "decoder_layers": 2,
        },
        None,
    ),
    (
        "RTDetrForObjectDetection",
        detected,
        {
            "num_labels": 5,
            "backbone_config": RESNET
            | {
                "model_type": "rt_detr_resnet",
                "out_features": ["stage2", "stage3", "stage4"],
            },
            "encoder_in_channels": [16, 24, 32],
            "encoder_hidden_dim": 32,
            "encoder_ffn_dim": 64,
            "encoder_attention_heads": 4,
            "d_model": 32,
            "decoder_in_channels": [32, 32, 32],
            "decoder_ffn_dim": 64,
            "decoder_layers": 1,
            "decoder_attention_heads": 4,
            "num_queries": 6,
            "num_denoising": 4,
        },
        None,
    ),
    (
        "YolosForObjectDetection",
        detected,
        LAYERS
        | {"image_size": [64, 64], "patch_size": 16, "num_detection_tokens": 6, "num_labels": 5},
        None,
    ),
    (
        "Mask2FormerForUniversalSegmentation",
        masks,
        {
            "backbone_config": WINDOWS
            | {
                "model_type": "swin",
                "out_features": ["stage1", "stage2", "stage3", "stage4"],
            },
            "feature_size": 32,
            "mask_feature_size": 32,
            "hidden_dim": 32,
            "encoder_feedforward_dim": 64,
            "encoder_layers": 1,
            "decoder_layers": 2,
            "num_attention_heads": 4,
            "dim_feedforward": 64,
            "num_queries": 6,
            "num_labels": 5,
            "train_num_points": 64,
        },
        None,
    ),
    ("VideoMAEForVideoClassification", video, VIDEO, None),
    ("TimesformerForVideoClassification", video, VIDEO, None),
    (
        "SamModel",
        pointed,
        {
            "vision_config": LAYERS
            | {"image_size": 64, "patch_size": 16, "output_channels": 32, "num_pos_feats": 16}
            | {"window_size": 2, "global_attn_indexes": [1], "mlp_dim": 128},
            "prompt_encoder_config": {"hidden_size": 32, "image_size": 64, "patch_size": 16},
            "mask_decoder_config": {
                "hidden_size": 32,
                "mlp_dim": 64,
                "num_attention_heads": 4,
                "iou_head_hidden_dim": 32,
            },
        },
        masks_found,
    ),
]


def configurations() -> list[Configuration]:
    """All of this module."""
    return [
        *(
            transformers_model("vision", model, classified, settings)
            for model, settings in CLASSIFIERS.items()
        ),
        *(
            transformers_model(
                "vision", model, inputs, settings, **({"loss": loss} if loss else {})
            )
            for model, inputs, settings, loss in OTHERS
        ),
    ]
