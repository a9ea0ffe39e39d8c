"""U-Nets, transformers and autoencoders of diffusers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.corpus.configuration import (
    BATCH,
    Built,
    Configuration,
    classes,
    entries,
    named_function,
    with_tuples,
)

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
    """Inputs of ControlNet, which sees a picture as a guide."""
    return prompted() | {"controlnet_cond": torch.randn(BATCH, 3, 128, 128)}


def moving() -> dict[str, Any]:
    """Inputs of video networks."""
    return prompted() | {"sample": clips()}


def animated() -> dict[str, Any]:
    """Inputs of AnimateDiff, which is given the prompt for every frame."""
    result = moving()
    return result | {"encoder_hidden_states": result["encoder_hidden_states"].repeat(4, 1, 1)}


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


def denoised(model: torch.nn.Module, noise: torch.Tensor | None = None, **batch: Any) -> Any:
    """The mean squared error of a network's prediction of the noise."""
    result: Any = model(**batch)
    return F.mse_loss(
        result.sample, noise if noise is not None else torch.zeros_like(result.sample)
    )


def controls(model: torch.nn.Module, **batch: Any) -> Any:
    """A loss of the features that a ControlNet adds to a U-Net."""
    result: Any = model(**batch)
    return result.mid_block_res_sample.square().mean()


def rebuilt(model: torch.nn.Module, sample: torch.Tensor) -> Any:
    """The mean squared error of a reconstructed picture."""
    result: Any = model(sample)
    return F.mse_loss(result.sample, sample)


def of_diffusers(entry: Mapping[str, Any]) -> Configuration:
    """A model class of diffusers, by an entry of the file."""
    inputs = named_function(entry["inputs"], globals())

    def build(training: bool) -> Built:
        import diffusers

        model: Any = getattr(diffusers, entry["model"])(**with_tuples(entry["settings"]))
        return model.train(training), inputs(), globals()[entry["loss"]]

    return Configuration(f"diffusers.{entry['name']}", "diffusers", "diffusion", build)


def configurations() -> list[Configuration]:
    """All of this module."""
    return [of_diffusers(entry) for entry in entries("diffusion")]
