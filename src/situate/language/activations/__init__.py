"""Memory of activations in llama.cpp: its graph, its scheduler and its allocator, replayed."""
