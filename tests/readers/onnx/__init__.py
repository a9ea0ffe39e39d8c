"""Tests of the ONNX reader."""
