"""Tests of spotlight."""
