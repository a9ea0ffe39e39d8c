"""The version of situate."""

VERSION = "0.1.0"
