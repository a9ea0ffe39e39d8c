"""Pipelines of slices: the model in stages along a line, and every slice through all of them, in an
order of passes that a method lays down for each device."""
