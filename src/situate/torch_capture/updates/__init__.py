"""The end of a captured training step: recipes of mixed precision, and clipped gradients."""
