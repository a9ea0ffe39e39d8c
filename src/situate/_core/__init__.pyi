from situate._core import (
    bounds as bounds,
    nn as nn,
    partition as partition,
    problem as problem,
    search as search,
    sharding as sharding,
    simulation as simulation,
    threads as threads
)
