"""The papers' sentences, the confirmation that each needs, and the findings: one module a paper."""
