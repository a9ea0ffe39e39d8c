"""REGAL: a graph network that proposes to a genetic search where to look (A. Paliwal et al.,
Reinforced Genetic Algorithm Learning for Optimizing Computation Graphs, ICLR 2020)."""
