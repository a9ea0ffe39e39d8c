"""U-Nets, transformers and autoencoders of diffusers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.corpus.configuration import BATCH, Built, Configuration, classes

WIDTHS = {"block_out_channels": (16, 32), "norm_num_groups": 8, "layers_per_block": 1}
CROSSED = {
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
    "cross_attention_dim": 32,
    "attention_head_dim": 8,
}
HEADS = {"num_attention_heads": 4, "attention_head_dim": 16, "num_layers": 2}
WORDS = 8


def latents(channels: int = 4, pixels: int = 16) -> torch.Tensor:
    """Pictures of few pixels."""
    return torch.randn(BATCH, channels, pixels, pixels)


def clips(channels: int = 4, frames: int = 4, pixels: int = 16) -> torch.Tensor:
    """Videos of few frames."""
    return torch.randn(BATCH, channels, frames, pixels, pixels)


def words(width: int = 32) -> torch.Tensor:
    """The output of a text encoder for a prompt."""
    return torch.randn(BATCH, WORDS, width)


def times() -> torch.Tensor:
    """The timesteps, by which a network knows the level of noise."""
    return torch.randint(1000, (BATCH,))


def unet() -> dict[str, Any]:
    """Inputs of a network without a prompt."""
    return {"sample": latents(3), "timestep": times()}


def prompted() -> dict[str, Any]:
    """Inputs of a network with a prompt."""
    return {"sample": latents(), "timestep": times(), "encoder_hidden_states": words()}


def sized() -> dict[str, Any]:
    """Inputs of Stable Diffusion XL, which is told the picture's size too."""
    added = {"text_embeds": torch.randn(BATCH, 16), "time_ids": torch.randn(BATCH, 6)}
    return prompted() | {"added_cond_kwargs": added}


def controlled() -> dict[str, Any]:
    """Inputs of ControlNet, which sees a picture of what is wanted."""
    return prompted() | {"controlnet_cond": torch.randn(BATCH, 3, 128, 128)}


def moving() -> dict[str, Any]:
    """Inputs of video networks."""
    return prompted() | {"sample": clips()}


def animated() -> dict[str, Any]:
    """Inputs of AnimateDiff, which is given the prompt for every frame."""
    found = moving()
    return found | {"encoder_hidden_states": found["encoder_hidden_states"].repeat(4, 1, 1)}


def from_picture() -> dict[str, Any]:
    """Inputs of Stable Video Diffusion."""
    return {
        "sample": torch.randn(BATCH, 4, 8, 16, 16),
        "timestep": times(),
        "encoder_hidden_states": torch.randn(BATCH, 1, 32),
        "added_time_ids": torch.randn(BATCH, 3),
    }


def labelled() -> dict[str, Any]:
    """Inputs of DiT."""
    return {"hidden_states": latents(), "timestep": times(), "class_labels": classes(10)}


def transformer(channels: int = 4) -> Callable[[], dict[str, Any]]:
    """Inputs of a transformer with a prompt."""

    def inputs() -> dict[str, Any]:
        return {
            "hidden_states": latents(channels),
            "timestep": times(),
            "encoder_hidden_states": words(),
        }

    return inputs


def pixart() -> dict[str, Any]:
    """Inputs of PixArt."""
    return transformer()() | {"added_cond_kwargs": {"resolution": None, "aspect_ratio": None}}


def stable_diffusion_3() -> dict[str, Any]:
    """Inputs of Stable Diffusion 3."""
    return transformer()() | {"pooled_projections": torch.randn(BATCH, 32)}


def flux() -> dict[str, Any]:
    """Inputs of FLUX."""
    return {
        "hidden_states": torch.randn(BATCH, 16, 4),
        "encoder_hidden_states": words(),
        "pooled_projections": torch.randn(BATCH, 32),
        "timestep": torch.rand(BATCH),
        "img_ids": torch.zeros(16, 3),
        "txt_ids": torch.zeros(WORDS, 3),
        "guidance": torch.ones(BATCH),
    }


def qwen_image() -> dict[str, Any]:
    """Inputs of Qwen-Image."""
    return {
        "hidden_states": torch.randn(BATCH, 16, 16),
        "encoder_hidden_states": words(),
        "encoder_hidden_states_mask": torch.ones(BATCH, WORDS, dtype=torch.long),
        "timestep": torch.rand(BATCH),
        "img_shapes": [(1, 4, 4)] * BATCH,
    }


def lumina() -> dict[str, Any]:
    """Inputs of Lumina."""
    mask = torch.ones(BATCH, WORDS, dtype=torch.bool)
    return transformer()() | {"timestep": torch.rand(BATCH), "encoder_attention_mask": mask}


def video_transformer() -> dict[str, Any]:
    """Inputs of Wan."""
    return transformer()() | {"hidden_states": clips()}


def cogvideo() -> dict[str, Any]:
    """Inputs of CogVideoX."""
    return transformer()() | {"hidden_states": torch.randn(BATCH, 2, 4, 16, 16)}


def ltx() -> dict[str, Any]:
    """Inputs of LTX-Video."""
    return {
        "hidden_states": torch.randn(BATCH, 32, 8),
        "encoder_hidden_states": words(),
        "timestep": times(),
        "encoder_attention_mask": torch.ones(BATCH, WORDS, dtype=torch.long),
        "num_frames": 2,
        "height": 4,
        "width": 4,
    }


def hunyuan() -> dict[str, Any]:
    """Inputs of HunyuanVideo."""
    return {
        "hidden_states": clips(),
        "timestep": times(),
        "encoder_hidden_states": words(),
        "encoder_attention_mask": torch.ones(BATCH, WORDS, dtype=torch.long),
        "pooled_projections": torch.randn(BATCH, 32),
        "guidance": torch.full((BATCH,), 6000.0),
    }


def picture() -> dict[str, Any]:
    """Inputs of an autoencoder."""
    return {"sample": latents(3, 32)}


def film() -> dict[str, Any]:
    """Inputs of an autoencoder of videos."""
    return {"sample": clips(3, 5)}


DENOISERS: list[tuple[str, str, Callable[[], dict[str, Any]], dict[str, Any]]] = [
    (
        "unet",
        "UNet2DModel",
        unet,
        WIDTHS
        | {"down_block_types": ("DownBlock2D", "AttnDownBlock2D")}
        | {"up_block_types": ("AttnUpBlock2D", "UpBlock2D"), "attention_head_dim": 8},
    ),
    ("unet_stable_diffusion", "UNet2DConditionModel", prompted, WIDTHS | CROSSED),
    (
        "unet_stable_diffusion_xl",
        "UNet2DConditionModel",
        sized,
        WIDTHS
        | CROSSED
        | {
            "addition_embed_type": "text_time",
            "addition_time_embed_dim": 8,
            "projection_class_embeddings_input_dim": 64,
            "use_linear_projection": True,
            "transformer_layers_per_block": (1, 2),
        },
    ),
    (
        "controlnet",
        "ControlNetModel",
        controlled,
        WIDTHS
        | {name: value for name, value in CROSSED.items() if name != "up_block_types"}
        | {"conditioning_embedding_out_channels": (8, 16, 16, 16)},
    ),
    (
        "unet_3d",
        "UNet3DConditionModel",
        moving,
        WIDTHS
        | CROSSED
        | {
            "down_block_types": ("CrossAttnDownBlock3D", "DownBlock3D"),
            "up_block_types": ("UpBlock3D", "CrossAttnUpBlock3D"),
        },
    ),
    (
        "unet_stable_video",
        "UNetSpatioTemporalConditionModel",
        from_picture,
        {
            "block_out_channels": (32, 64),
            "down_block_types": (
                "CrossAttnDownBlockSpatioTemporal",
                "DownBlockSpatioTemporal",
            ),
            "up_block_types": ("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"),
            "layers_per_block": 1,
            "cross_attention_dim": 32,
            "num_attention_heads": (2, 4),
            "addition_time_embed_dim": 8,
            "projection_class_embeddings_input_dim": 24,
            "num_frames": 4,
        },
    ),
    (
        "unet_motion",
        "UNetMotionModel",
        animated,
        WIDTHS
        | {
            "down_block_types": ("CrossAttnDownBlockMotion", "DownBlockMotion"),
            "up_block_types": ("UpBlockMotion", "CrossAttnUpBlockMotion"),
            "cross_attention_dim": 32,
            "num_attention_heads": 4,
            "motion_num_attention_heads": 4,
        },
    ),
    ("dit", "DiTTransformer2DModel", labelled, HEADS | {"sample_size": 16, "norm_num_groups": 8}),
    (
        "pixart",
        "PixArtTransformer2DModel",
        pixart,
        HEADS | {"sample_size": 16, "cross_attention_dim": 64, "caption_channels": 32},
    ),
    (
        "stable_diffusion_3",
        "SD3Transformer2DModel",
        stable_diffusion_3,
        HEADS
        | {
            "sample_size": 16,
            "in_channels": 4,
            "out_channels": 4,
            "joint_attention_dim": 32,
            "caption_projection_dim": 64,
            "pooled_projection_dim": 32,
        },
    ),
    (
        "flux",
        "FluxTransformer2DModel",
        flux,
        HEADS
        | {
            "in_channels": 4,
            "num_single_layers": 2,
            "joint_attention_dim": 32,
            "pooled_projection_dim": 32,
            "guidance_embeds": True,
            "axes_dims_rope": (4, 6, 6),
        },
    ),
    (
        "qwen_image",
        "QwenImageTransformer2DModel",
        qwen_image,
        HEADS
        | {
            "in_channels": 16,
            "out_channels": 4,
            "joint_attention_dim": 32,
            "axes_dims_rope": (4, 6, 6),
        },
    ),
    (
        "aura_flow",
        "AuraFlowTransformer2DModel",
        transformer(),
        {
            "sample_size": 16,
            "num_mmdit_layers": 1,
            "num_single_dit_layers": 1,
            "num_attention_heads": 4,
            "attention_head_dim": 16,
            "joint_attention_dim": 32,
            "caption_projection_dim": 64,
            "pos_embed_max_size": 64,
        },
    ),
    (
        "lumina",
        "Lumina2Transformer2DModel",
        lumina,
        {
            "sample_size": 16,
            "in_channels": 4,
            "hidden_size": 48,
            "num_layers": 1,
            "num_refiner_layers": 1,
            "num_attention_heads": 4,
            "num_kv_heads": 2,
            "multiple_of": 16,
            "axes_dim_rope": (4, 4, 4),
            "axes_lens": (32, 32, 32),
            "cap_feat_dim": 32,
        },
    ),
    (
        "sana",
        "SanaTransformer2DModel",
        transformer(),
        HEADS
        | {
            "in_channels": 4,
            "out_channels": 4,
            "num_cross_attention_heads": 4,
            "cross_attention_head_dim": 16,
            "cross_attention_dim": 64,
            "caption_channels": 32,
            "sample_size": 16,
        },
    ),
    (
        "wan",
        "WanTransformer3DModel",
        video_transformer,
        HEADS
        | {
            "in_channels": 4,
            "out_channels": 4,
            "text_dim": 32,
            "freq_dim": 16,
            "ffn_dim": 128,
            "rope_max_seq_len": 32,
        },
    ),
    (
        "cogvideo",
        "CogVideoXTransformer3DModel",
        cogvideo,
        HEADS
        | {
            "in_channels": 4,
            "out_channels": 4,
            "time_embed_dim": 16,
            "text_embed_dim": 32,
            "sample_width": 16,
            "sample_height": 16,
            "sample_frames": 5,
            "max_text_seq_length": WORDS,
        },
    ),
    (
        "ltx_video",
        "LTXVideoTransformer3DModel",
        ltx,
        HEADS
        | {
            "in_channels": 8,
            "out_channels": 8,
            "cross_attention_dim": 64,
            "caption_channels": 32,
        },
    ),
    (
        "hunyuan_video",
        "HunyuanVideoTransformer3DModel",
        hunyuan,
        HEADS
        | {
            "in_channels": 4,
            "out_channels": 4,
            "num_layers": 1,
            "num_single_layers": 1,
            "num_refiner_layers": 1,
            "text_embed_dim": 32,
            "pooled_projection_dim": 32,
            "rope_axes_dim": (4, 6, 6),
        },
    ),
]

AUTOENCODERS: list[tuple[str, str, Callable[[], dict[str, Any]], dict[str, Any]]] = [
    (
        "autoencoder",
        "AutoencoderKL",
        picture,
        WIDTHS
        | {
            "down_block_types": ("DownEncoderBlock2D",) * 2,
            "up_block_types": ("UpDecoderBlock2D",) * 2,
        },
    ),
    (
        "vq",
        "VQModel",
        picture,
        WIDTHS
        | {
            "down_block_types": ("DownEncoderBlock2D",) * 2,
            "up_block_types": ("UpDecoderBlock2D",) * 2,
            "num_vq_embeddings": 32,
            "latent_channels": 4,
        },
    ),
    (
        "autoencoder_tiny",
        "AutoencoderTiny",
        picture,
        {
            "encoder_block_out_channels": (16, 16),
            "decoder_block_out_channels": (16, 16),
            "num_encoder_blocks": (1, 1),
            "num_decoder_blocks": (1, 1),
        },
    ),
    (
        "autoencoder_dc",
        "AutoencoderDC",
        picture,
        {
            "latent_channels": 4,
            "attention_head_dim": 8,
            "encoder_block_types": ("ResBlock", "EfficientViTBlock"),
            "decoder_block_types": ("ResBlock", "EfficientViTBlock"),
            "encoder_block_out_channels": (16, 32),
            "decoder_block_out_channels": (16, 32),
            "encoder_layers_per_block": (1, 1),
            "decoder_layers_per_block": (1, 1),
            "encoder_qkv_multiscales": ((), (5,)),
            "decoder_qkv_multiscales": ((), (5,)),
        },
    ),
    (
        "autoencoder_wan",
        "AutoencoderKLWan",
        film,
        {
            "base_dim": 8,
            "z_dim": 4,
            "dim_mult": [1, 2],
            "num_res_blocks": 1,
            "temperal_downsample": [True],
            "latents_mean": [0.0] * 4,
            "latents_std": [1.0] * 4,
        },
    ),
]


def denoised(model: torch.nn.Module, noise: torch.Tensor | None = None, **batch: Any) -> Any:
    """The mean squared error of a network's prediction of the noise."""
    found: Any = model(**batch)
    return F.mse_loss(found.sample, noise if noise is not None else torch.zeros_like(found.sample))


def controls(model: torch.nn.Module, **batch: Any) -> Any:
    """A loss of what a ControlNet adds to a U-Net."""
    found: Any = model(**batch)
    return found.mid_block_res_sample.square().mean()


def rebuilt(model: torch.nn.Module, sample: torch.Tensor) -> Any:
    """The mean squared error of a reconstructed picture."""
    found: Any = model(sample)
    return F.mse_loss(found.sample, sample)


def of_diffusers(
    name: str,
    model: str,
    inputs: Callable[[], dict[str, Any]],
    settings: Mapping[str, Any],
    loss: Callable[..., Any],
) -> Configuration:
    """A model class of diffusers with such settings."""

    def build(training: bool) -> Built:
        import diffusers

        made: Any = getattr(diffusers, model)(**settings)
        return made.train(training), inputs(), loss

    return Configuration(f"diffusers.{name}", "diffusers", "diffusion", build)


def configurations() -> list[Configuration]:
    """All of this module."""
    return [
        *(
            of_diffusers(*entry, controls if entry[0] == "controlnet" else denoised)
            for entry in DENOISERS
        ),
        *(of_diffusers(*entry, rebuilt) for entry in AUTOENCODERS),
    ]
