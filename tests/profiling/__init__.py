"""Tests of `situate.profiling`."""
