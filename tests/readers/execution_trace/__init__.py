"""Tests of the reader of PyTorch execution traces."""
