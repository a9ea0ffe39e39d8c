"""Tests of `situate.costs`."""
