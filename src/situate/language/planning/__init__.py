"""Plans of language models on homes: which layers, experts and caches lie where."""
