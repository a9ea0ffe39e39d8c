"""Language models without their weights: GGUF files, and folders with a `config.json`."""

from situate.language.reading import is_language_model, read_language_model

__all__ = ["is_language_model", "read_language_model"]
