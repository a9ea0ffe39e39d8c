"""The CIFAR-10 CNN at the size of Spotlight's slides: 926 ops in 86 groups by two-level prefix.

The slides give these two numbers and three prefixes: `conv1/biases`, `input_ops/input_ops` and
`loss/cross_entropy`. The layers are those of the zoo's `cifar_cnn`, the network of TensorFlow's
tutorial, and the scopes are those that TensorFlow gives its training graph: input pipeline,
variables, layers, losses, summaries, gradients, updates and moving averages. TensorFlow also has
helper ops without kernels of their own (constants, shapes, identities), which take no time here.
They fill the scopes evenly up to 926 ops, so their number in each scope is a choice of this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from situate.data.graph import Graph, Op, Tensor

NAME = "cifar_tensorflow"
OPS, GROUPS = 926, 86
BATCH, SIDE, CLASSES = 128, 32, 10
FLOAT = 4
"""Bytes of a number."""

INPUTS = ("producer", "reader", "crop", "flip", "brightness", "contrast", "scale", "input_ops")
"""Scopes of the input pipeline; the last makes batches."""

HELPER_BYTES = 8


@dataclass(frozen=True)
class Layer:
    """A layer with variables.

    Attributes:
        name: its scope.
        kind: TensorFlow's op type.
        weights: shape of its weights; its biases are as many as the last number.
        sites: rows of the output: samples times places.
    """

    name: str
    kind: str
    weights: tuple[int, ...]
    sites: int

    @property
    def outputs(self) -> int:
        """Numbers in the output."""
        return self.sites * self.weights[-1]

    @property
    def flops(self) -> int:
        """FLOPs of the forward pass."""
        return 2 * self.sites * prod(self.weights)


LAYERS = (
    Layer("conv1", "Conv2D", (5, 5, 3, 64), BATCH * SIDE**2),
    Layer("conv2", "Conv2D", (5, 5, 64, 64), BATCH * (SIDE // 2) ** 2),
    Layer("local3", "MatMul", ((SIDE // 4) ** 2 * 64, 384), BATCH),
    Layer("local4", "MatMul", (384, 192), BATCH),
    Layer("softmax_linear", "MatMul", (192, CLASSES), BATCH),
)
BETWEEN = {
    "conv1": (("pool1", "MaxPool", 4), ("norm1", "LRN", 1)),
    "conv2": (("norm2", "LRN", 1), ("pool2", "MaxPool", 4)),
}
"""Ops after a layer: name, type, and the factor by which the output is smaller."""


@dataclass
class _Builder:
    """Ops with one output each, in the order of their inputs."""

    ops: list[Op] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    readers: list[list[int]] = field(default_factory=list)
    scopes: list[str] = field(default_factory=list)

    def add(
        self,
        scope: str,
        name: str,
        kind: str,
        inputs: Sequence[int] = (),
        numbers: int = 1,
        flops: int = 0,
        persistent: int = 0,
    ) -> int:
        """The index of a new op with an output of that many numbers."""
        traffic = FLOAT * (numbers + sum(self.numbers[source] for source in inputs))
        return self._append(
            Op(f"{scope}/{name}", kind, flops, traffic, persistent=FLOAT * persistent),
            scope,
            inputs,
            numbers,
        )

    def _append(self, op: Op, scope: str, inputs: Sequence[int], numbers: int) -> int:
        index = len(self.ops)
        self.ops.append(op)
        self.numbers.append(numbers)
        self.readers.append([])
        for source in dict.fromkeys(inputs):
            self.readers[source].append(index)
        if scope not in self.scopes:
            self.scopes.append(scope)
        return index

    def helpers(self, count: int) -> None:
        """Ops without arithmetic and traffic, which take no time, in turn in all scopes. Each
        reads eight bytes of the one before it in its scope."""
        last: dict[str, int] = {}
        for number in range(count):
            scope = self.scopes[number % len(self.scopes)]
            inputs = [last[scope]] if scope in last else []
            kind = "Identity" if inputs else "Const"
            name = f"helper_{number // len(self.scopes)}"
            op = Op(f"{scope}/{name}", kind)
            last[scope] = self._append(op, scope, inputs, HELPER_BYTES // FLOAT)

    def graph(self) -> Graph:
        """The graph of all ops."""
        tensors = tuple(
            Tensor(f"{op.name}:0", j, FLOAT * numbers, tuple(readers))
            for j, (op, numbers, readers) in enumerate(
                zip(self.ops, self.numbers, self.readers, strict=True)
            )
            if readers
        )
        return Graph(NAME, tuple(self.ops), tensors, source="tensorflow")


def cifar_tensorflow() -> Graph:
    """The training step: 926 ops, float32, batch 128."""
    builder = _Builder()
    images = _inputs(builder)
    labels = builder.add("input_ops/labels", "labels", "Reshape", [images], BATCH)
    step = builder.add("global_step/global_step", "global_step", "VariableV2", persistent=1)
    rate = builder.add("train/ExponentialDecay", "ExponentialDecay", "Mul", [step])
    builder.add("summary/learning_rate", "learning_rate", "ScalarSummary", [rate])
    forward, variables = _forward(builder, images)
    loss, decays = _losses(builder, forward[-1], labels, variables)
    _backward(builder, forward, variables, loss, decays, rate)
    builder.helpers(OPS - len(builder.ops))
    return builder.graph()


def _inputs(builder: _Builder) -> int:
    """The batch of images."""
    batch = BATCH * SIDE**2 * 3
    last: list[int] = []
    for name in INPUTS:
        last = [builder.add(f"input_ops/{name}", name, "Identity", last, batch, flops=batch)]
    return last[0]


def _forward(builder: _Builder, images: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Ops along the network, each the only input of the next, and (weights, biases) of layers."""
    chain, variables = [images], []
    for layer in LAYERS:
        pair = tuple(
            builder.add(f"{layer.name}/{name}", "read", "Identity", (), size, persistent=2 * size)
            for name, size in (("weights", prod(layer.weights)), ("biases", layer.weights[-1]))
        )
        variables.append((pair[0], pair[1]))
        scope, size = f"{layer.name}/{layer.name}", layer.outputs
        inputs = [chain[-1], pair[0]]
        product = builder.add(scope, layer.kind, layer.kind, inputs, size, layer.flops)
        added = builder.add(scope, "BiasAdd", "BiasAdd", [product, pair[1]], size, size)
        chain += [product, added]
        if layer is not LAYERS[-1]:
            chain.append(builder.add(scope, "Relu", "Relu", [added], size, size))
        for summary in ("activations", "sparsity"):
            where = f"{layer.name}/{summary}"
            builder.add(where, summary, "HistogramSummary", [chain[-1]], 1, size)
        for name, kind, smaller in BETWEEN.get(layer.name, ()):
            size //= smaller
            chain.append(builder.add(f"{name}/{name}", name, kind, [chain[-1]], size, 9 * size))
    return chain, variables


def _losses(
    builder: _Builder, logits: int, labels: int, variables: Sequence[tuple[int, int]]
) -> tuple[int, list[int]]:
    """The loss, and the weight decays of local3 and local4."""
    numbers = BATCH * CLASSES
    losses = builder.add(
        "loss/cross_entropy", "per_example", "SparseSoftmaxCrossEntropyWithLogits",
        [logits, labels], BATCH, 5 * numbers,
    )  # fmt: skip
    mean = builder.add("loss/cross_entropy", "mean", "Mean", [losses], 1, BATCH)
    decays = [
        builder.add(
            f"{LAYERS[k].name}/weight_loss", "L2Loss", "L2Loss", [variables[k][0]], 1,
            2 * prod(LAYERS[k].weights),
        )
        for k in (2, 3)
    ]  # fmt: skip
    total = builder.add("loss/total_loss", "AddN", "AddN", [mean, *decays], 1, 3)
    for name, value in (("cross_entropy", mean), ("total_loss", total)):
        average = builder.add(f"avg/{name}", "AssignMovingAvg", "AssignSub", [value], 1, 3)
        builder.add(f"summary/{name}", name, "ScalarSummary", [average])
    return total, decays


def _backward(
    builder: _Builder,
    chain: Sequence[int],
    variables: Sequence[tuple[int, int]],
    loss: int,
    decays: Sequence[int],
    rate: int,
) -> None:
    """Gradients along the network backwards, then updates and moving averages."""
    numbers = BATCH * CLASSES
    scope = "gradients/cross_entropy_grad"
    gradient = builder.add(scope, "mul", "Mul", [loss, chain[-1]], numbers, 2 * numbers)
    of_variable: dict[int, int] = {}
    layer_of_product = {
        builder.ops[index].name.partition("/")[0]: index
        for index in chain
        if builder.ops[index].kind in ("Conv2D", "MatMul")
    }
    for place in range(len(chain) - 1, 0, -1):
        index, before = chain[place], chain[place - 1]
        op, top = builder.ops[index], builder.ops[index].name.partition("/")[0]
        scope = f"gradients/{top}_grad"
        if op.kind in ("Conv2D", "MatMul"):
            number = list(layer_of_product).index(top)
            layer, (weights, _) = LAYERS[number], variables[number]
            of_variable[weights] = builder.add(
                scope, f"{op.kind}Filter", f"{op.kind}BackpropFilter", [before, gradient],
                prod(layer.weights), layer.flops,
            )  # fmt: skip
            if number:
                gradient = builder.add(
                    scope, f"{op.kind}Input", f"{op.kind}BackpropInput", [weights, gradient],
                    builder.numbers[before], layer.flops,
                )  # fmt: skip
        elif op.kind == "BiasAdd":
            number = [layer.name for layer in LAYERS].index(top)
            biases, size = variables[number][1], builder.numbers[index]
            inputs = [gradient]
            of_variable[biases] = builder.add(
                scope, "BiasAddGrad", "BiasAddGrad", inputs, builder.numbers[biases], size
            )
        else:
            size = builder.numbers[before]
            inputs = [gradient, before, index]
            gradient = builder.add(scope, f"{op.kind}Grad", f"{op.kind}Grad", inputs, size, size)
    _updates(builder, variables, of_variable, decays, rate)


def _updates(
    builder: _Builder,
    variables: Sequence[tuple[int, int]],
    of_variable: dict[int, int],
    decays: Sequence[int],
    rate: int,
) -> None:
    for number, (layer, pair) in enumerate(zip(LAYERS, variables, strict=True)):
        for name, variable in zip(("weights", "biases"), pair, strict=True):
            gradient, size = of_variable[variable], builder.numbers[variable]
            inputs = [gradient, variable]
            if name == "weights" and number in (2, 3):
                inputs.append(decays[number - 2])
                gradient = builder.add(
                    f"gradients/{layer.name}_weight_loss_grad", "AddN", "AddN", inputs, size,
                    2 * size,
                )  # fmt: skip
            update = builder.add(
                f"GradientDescent/update_{layer.name}", name, "ApplyGradientDescent",
                [variable, gradient, rate], size, 2 * size,
            )  # fmt: skip
            average = f"ExponentialMovingAverage/{layer.name}_{name}"
            builder.add(average, "AssignMovingAvg", "AssignSub", [update], size, 3 * size)
            for what, source in (("values", variable), ("gradients", gradient)):
                where = f"{layer.name}/{name}_summary"
                builder.add(where, what, "HistogramSummary", [source], 1, size)
