"""Small models in the manner of the libraries, whose outermost modules hold or combine things.

Each function makes a model and the inputs of a step; the model itself is called with them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

WIDTH = 32

ModelInputs = tuple[nn.Module, tuple[Tensor, ...]]


class Block(nn.Module):
    """A residual block; `context` is read where there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)
        self.down = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        result = self.up(self.norm(x)).relu()
        return x + self.down(result if context is None else result * context.mean())


def blocks(count: int) -> nn.ModuleList:
    return nn.ModuleList(Block() for _ in range(count))


class ImageTransformer(nn.Module):
    """A class token and positions are the outermost module's own, as timm has them."""

    def __init__(self) -> None:
        super().__init__()
        self.cls_token = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.pos_embed = nn.Parameter(torch.randn(1, 5, WIDTH))
        self.patch_embed = nn.Conv2d(3, WIDTH, 4, 4)
        self.blocks, self.norm = blocks(6), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patch_embed(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


def image_transformer() -> ModelInputs:
    return ImageTransformer(), (torch.randn(2, 3, 8, 8),)


class Stage(nn.Module):
    """Blocks behind a smaller picture, as in Swin and ConvNeXt."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.downsample, self.blocks = nn.Linear(2 * WIDTH, WIDTH), blocks(depth)

    def forward(self, x: Tensor) -> Tensor:
        x = self.downsample(x.reshape(x.shape[0], -1, 2 * WIDTH))
        for block in self.blocks:
            x = block(x)
        return x


class Hierarchy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(3, WIDTH)
        self.position = nn.Parameter(torch.randn(1, 16, WIDTH))
        self.stages = nn.Sequential(Stage(1), Stage(3), Stage(1))
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.stages(self.stem(x) + self.position).mean(1))


def hierarchy() -> ModelInputs:
    return Hierarchy(), (torch.randn(2, 16, 3),)


class Tower(nn.Module):
    def __init__(self, first: nn.Module) -> None:
        super().__init__()
        self.first, self.layers, self.norm = first, blocks(3), nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x).mean(1)


class TwoTowers(nn.Module):
    """Text and images meet in the outermost module, which holds a scale, as in CLIP."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.vision = Tower(nn.Embedding(16, WIDTH)), Tower(nn.Linear(6, WIDTH))
        self.text_projection = nn.Linear(WIDTH, 8, bias=False)
        self.visual_projection = nn.Linear(WIDTH, 8, bias=False)
        self.logit_scale = nn.Parameter(torch.tensor(2.6))

    def forward(self, tokens: Tensor, image: Tensor) -> Tensor:
        text = self.text_projection(self.text(tokens))
        return text @ self.visual_projection(self.vision(image)).t() * self.logit_scale.exp()


def two_towers() -> ModelInputs:
    return TwoTowers(), (torch.randint(16, (3, 5)), torch.randn(3, 4, 6))


class Classifier(nn.Module):
    """Makes its own loss, and does not bring the labels to the logits, as BERT's does not."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.layers = nn.Embedding(16, WIDTH), blocks(6)
        self.classifier = nn.Linear(WIDTH, 3)

    def forward(self, tokens: Tensor, labels: Tensor) -> Tensor:
        x = self.words(tokens)
        for layer in self.layers:
            x = layer(x)
        return cross_entropy(self.classifier(x.mean(1)), labels)


def classifier() -> ModelInputs:
    return Classifier(), (torch.randint(16, (3, 5)), torch.tensor([0, 2, 1]))


class Adapted(nn.Module):
    """A layer and a small update of it, as LoRA has them."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base_layer = base
        self.lora_A = nn.ModuleDict({"default": nn.Linear(WIDTH, 2, bias=False)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(2, WIDTH, bias=False)})

    def forward(self, x: Tensor) -> Tensor:
        return self.base_layer(x) + self.lora_B["default"](self.lora_A["default"](x)) * 2.0


class Around(nn.Module):
    """Hands everything to the model inside, labels too."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.model(*inputs)


def _adapted(model: nn.Module) -> nn.Module:
    for module in list(model.modules()):
        if isinstance(module, Block):
            module.up = Adapted(module.up)  # type: ignore[assignment]
    return Around(Around(model))


def lora() -> ModelInputs:
    model, inputs = classifier()
    return _adapted(model), inputs


def lora_of_image_transformer() -> ModelInputs:
    """A token and positions are then those of a module in others, which is split."""
    model, inputs = image_transformer()
    return _adapted(model), inputs


class Decoder(nn.Module):
    def __init__(self, words: nn.Embedding) -> None:
        super().__init__()
        self.words, self.block, self.norm = words, blocks(3), nn.LayerNorm(WIDTH)

    def forward(self, tokens: Tensor, context: Tensor) -> Tensor:
        x = self.words(tokens)
        for block in self.block:
            x = block(x, context)
        return self.norm(x)


class EncoderDecoder(nn.Module):
    """One embedding for encoder, decoder and output, and labels that the decoder reads too, as T5
    and Whisper have them."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Embedding(16, WIDTH)
        self.encoder, self.decoder = Tower(self.shared), Decoder(self.shared)
        self.lm_head = nn.Linear(WIDTH, 16, bias=False)
        self.lm_head.weight = self.shared.weight

    def forward(self, tokens: Tensor, labels: Tensor) -> Tensor:
        context = self.encoder(tokens)
        x = self.decoder(labels.roll(1, 1), context)
        return cross_entropy(self.lm_head(x).flatten(0, 1), labels.flatten())


def encoder_decoder() -> ModelInputs:
    return EncoderDecoder(), (torch.randint(16, (3, 5)), torch.randint(16, (3, 4)))


class Convolutions(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(2, inputs)
        self.first = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(8, outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        result = self.first(self.norm(x).relu()) + self.time(time)[:, :, None, None]
        return self.shortcut(x) + self.second(result.relu())


class Down(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.resnets = nn.ModuleList(Convolutions(8, 8) for _ in range(2))
        self.downsample = nn.Conv2d(8, 8, 3, 2, 1)

    def forward(self, x: Tensor, time: Tensor) -> tuple[Tensor, list[Tensor]]:
        remaining = []
        for resnet in self.resnets:
            x = resnet(x, time)
            remaining.append(x)
        return self.downsample(x), remaining


class Up(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.resnets = nn.ModuleList(Convolutions(16, 8) for _ in range(2))
        self.upsample = nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x: Tensor, residuals: list[Tensor], time: Tensor) -> Tensor:
        x = self.upsample(x.repeat_interleave(2, 2).repeat_interleave(2, 3))
        for resnet in self.resnets:
            x = resnet(torch.cat([x, residuals.pop()], 1), time)
        return x


class UNet(nn.Module):
    """Blocks are handed tensors that earlier ones kept, as in diffusers."""

    def __init__(self) -> None:
        super().__init__()
        self.time, self.conv_in = nn.Linear(1, 8), nn.Conv2d(3, 8, 3, padding=1)
        self.down_blocks = nn.ModuleList(Down() for _ in range(2))
        self.mid_block = Convolutions(8, 8)
        self.up_blocks = nn.ModuleList(Up() for _ in range(2))
        self.conv_out = nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, sample: Tensor, step: Tensor) -> Tensor:
        time, remaining = self.time(step), list[Tensor]()
        x = self.conv_in(sample)
        for block in self.down_blocks:
            x, more = block(x, time)
            remaining += more
        x = self.mid_block(x, time)
        for block in self.up_blocks:
            x = block(x, [remaining.pop(-2), remaining.pop()], time)
        return self.conv_out(x)


def unet() -> ModelInputs:
    return UNet(), (torch.randn(1, 3, 8, 8), torch.rand(1, 1))


class SkippingUNet(nn.Module):
    """The outermost module itself puts results of earlier blocks beside those of later ones."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.down = nn.ModuleList(Convolutions(8, 8) for _ in range(3))
        self.up = nn.ModuleList(Convolutions(16, 8) for _ in range(3))
        self.last = nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, sample: Tensor, time: Tensor) -> Tensor:
        x, remaining = self.first(sample), []
        for block in self.down:
            x = block(x, time)
            remaining.append(x)
        for block in self.up:
            x = block(torch.cat([x, remaining.pop()], 1), time)
        return sample + self.last(x)


def skipping_unet() -> ModelInputs:
    return SkippingUNet(), (torch.randn(1, 3, 8, 8), torch.rand(1, 8))


class Double(nn.Module):
    """Two streams, each with a residual, that see one another."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.text = Block(), Block()
        self.modulation = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, text: Tensor, time: Tensor) -> tuple[Tensor, Tensor]:
        shift = self.modulation(time)[:, None]
        return x + self.image(x + shift, text), text + self.text(text + shift, x)


class Flux(nn.Module):
    """Double blocks, then single ones over both streams as one."""

    def __init__(self) -> None:
        super().__init__()
        self.x_embedder, self.context_embedder = nn.Linear(6, WIDTH), nn.Linear(4, WIDTH)
        self.time_embed = nn.Linear(1, WIDTH)
        self.transformer_blocks = nn.ModuleList(Double() for _ in range(2))
        self.single_transformer_blocks = blocks(4)
        self.norm_out, self.proj_out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 6)

    def forward(self, image: Tensor, text: Tensor, step: Tensor) -> Tensor:
        x, context, time = (
            self.x_embedder(image),
            self.context_embedder(text),
            self.time_embed(step),
        )
        for block in self.transformer_blocks:
            x, context = block(x, context, time)
        x = torch.cat([context, x], 1)
        for block in self.single_transformer_blocks:
            x = block(x, time)
        return self.proj_out(self.norm_out(x[:, context.shape[1] :]))


def flux() -> ModelInputs:
    return Flux(), (torch.randn(1, 7, 6), torch.randn(1, 5, 4), torch.rand(1, 1))


MODELS: dict[str, Callable[[], ModelInputs]] = {
    make.__name__: make
    for make in (
        image_transformer,
        hierarchy,
        two_towers,
        classifier,
        lora,
        lora_of_image_transformer,
        encoder_decoder,
        unet,
        skipping_unet,
        flux,
    )
}
