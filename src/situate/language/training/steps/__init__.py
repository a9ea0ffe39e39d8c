"""A training step in a layout as a graph of ops, with the order in which the program runs them."""
