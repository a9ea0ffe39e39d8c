"""The parts of a problem: graph, cluster, costs and rules, and their arrays."""
