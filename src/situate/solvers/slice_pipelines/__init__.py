"""Pipelines of slices: the model in stages along a line, with every slice through all of them. Each
method defines the order of passes on each device."""
