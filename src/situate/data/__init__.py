"""The parts of a problem: graph, cluster, costs and rules, and the arrays made of them."""
