"""The papers' sentences, what would confirm each, and what was found: one module a paper."""
