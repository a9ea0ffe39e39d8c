"""A small good file of every format."""

from __future__ import annotations

import json
from pathlib import Path

from situate.data.graph import Graph, Op, Tensor
from situate.data.graph_json import encode
from tests.readers import models, test_costgraph, test_doppler, test_pipedream, test_stg, traces

DATA = Path(__file__).parent.parent / "instances"

SAMPLES: dict[str, bytes] = {
    "situate": encode(
        Graph(
            "pair",
            (Op("a", seconds={"*": 1.5}, group="g"), Op("b", flops=8)),
            (Tensor("t", 0, 8, (1,), output=True),),
            ((0, 1),),
        )
    ),
    "dnn-partitioning": json.dumps(
        {
            "maxSizePerFPGA": 100.0,
            "maxFPGAs": 1,
            "maxCPUs": 1,
            "nodes": [
                {"id": i, "supportedOnFpga": 1, "cpuLatency": 2.0, "fpgaLatency": 1.0, "size": 8.0}
                for i in range(2)
            ],
            "edges": [{"sourceId": 0, "destId": 1, "cost": 1.0, "size": 8.0}],
        },
        indent=1,
    ).encode(),
    "pipedream": test_pipedream.SMALL,
    "doppler": test_doppler.SMALL,
    "stg": test_stg.DIAMOND,
    "costgraph": test_costgraph.binary(),
    "onnx": models.convolution(),
    "execution-trace": traces.execution_trace(*traces.RELU),
    "chrome-trace": traces.chrome_trace(*traces.KERNELS),
}
