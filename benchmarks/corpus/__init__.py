"""Small models of public packages, with random weights: whether each is captured, planned, exported
and placed without changing a number."""
