"""Measuring what the ops of a model and the links of this machine take."""
