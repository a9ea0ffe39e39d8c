"""GPT-2, BERT, ViT and Llama from transformers' configurations, without weights.

Sizes are those of the published models. Attention has no dropout, so that it stays one fused op, as
on a GPU. Llama and its optimiser's state are in bfloat16.
"""

from __future__ import annotations

import contextlib
from typing import Any, cast

import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.initialization import no_init_weights
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from situate.zoo.parts import ModelParts

ATTENTION = "unmasked_sdpa"
"""Fused attention without a mask: no sequence is padded, and causality needs none."""

transformers.AttentionInterface.register(ATTENTION, sdpa_attention_forward)


def language_loss(model: nn.Module, tokens: Tensor, following: Tensor) -> Tensor:
    """Cross entropy with the following tokens, in float32."""
    logits = model(input_ids=tokens, use_cache=False).logits
    return F.cross_entropy(logits.flatten(0, 1).float(), following.flatten())


def masked_loss(model: nn.Module, tokens: Tensor, masked: Tensor) -> Tensor:
    """Cross entropy with the tokens behind the mask."""
    logits = model(input_ids=tokens).logits
    return F.cross_entropy(logits.flatten(0, 1), masked.flatten())


def image_loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy."""
    return F.cross_entropy(model(pixel_values=images).logits, labels)


def gpt2(batch: int = 8, length: int = 1024) -> ModelParts:
    """GPT-2 small: 124 million parameters (Radford et al., 2019)."""
    config = transformers.GPT2Config(attn_pdrop=0.0)
    model = from_config(transformers.AutoModelForCausalLM, config)
    return model, tokens(config.vocab_size, batch, length), language_loss


def bert(batch: int = 8, length: int = 512) -> ModelParts:
    """BERT base: 110 million parameters (Devlin et al., NAACL 2019)."""
    config = transformers.BertConfig(attention_probs_dropout_prob=0.0)
    model = from_config(transformers.AutoModelForMaskedLM, config)
    return model, tokens(config.vocab_size, batch, length), masked_loss


def vit(batch: int = 32) -> ModelParts:
    """ViT base, patches of 16 x 16: 86 million parameters (Dosovitskiy et al., ICLR 2021)."""
    config: Any = transformers.ViTConfig()
    config.num_labels = 1000
    images = torch.randn(batch, 3, config.image_size, config.image_size)
    labels = torch.randint(config.num_labels, (batch,))
    model = from_config(transformers.AutoModelForImageClassification, config)
    return model, (images, labels), image_loss


def llama_7b(batch: int = 1, length: int = 2048) -> ModelParts:
    """Llama 7B (Touvron et al., 2023)."""
    return _llama(transformers.LlamaConfig(), batch, length)


def llama_70b(batch: int = 1, length: int = 2048) -> ModelParts:
    """Llama 2 70B (Touvron et al., 2023)."""
    config = transformers.LlamaConfig(
        hidden_size=8192,
        intermediate_size=28672,
        num_hidden_layers=80,
        num_attention_heads=64,
        num_key_value_heads=8,
    )
    return _llama(config, batch, length)


def _llama(config: transformers.LlamaConfig, batch: int, length: int) -> ModelParts:
    model = from_config(transformers.AutoModelForCausalLM, config, torch.bfloat16)
    return model, tokens(config.vocab_size, batch, length), language_loss


def from_config(auto: Any, config: Any, dtype: torch.dtype = torch.float32) -> nn.Module:
    """A model with unmasked attention. On fake tensors no weights are drawn."""
    # Under FakeTensorMode a new tensor is a FakeTensor, which has a shape and no values.
    is_fake = type(torch.empty(0)) is not Tensor
    with no_init_weights() if is_fake else contextlib.nullcontext():
        model: Any = auto.from_config(config, dtype=dtype, attn_implementation=ATTENTION)
    model.tie_weights()
    return cast(nn.Module, model)


def tokens(vocabulary: int, batch: int, length: int) -> tuple[Tensor, ...]:
    """Tokens and the tokens that follow them, each (batch, length)."""
    return torch.randint(vocabulary, (2, batch, length)).unbind()
