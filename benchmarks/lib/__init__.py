"""Records, generated graphs, placements and processes, for all benchmarks."""
