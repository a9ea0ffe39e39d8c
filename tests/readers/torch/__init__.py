"""Tests of PyTorch capture."""
