"""Tests of the reader of Chrome traces."""
