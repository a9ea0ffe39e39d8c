"""Measurement of a model's ops and this machine's links."""
