"""REGAL: a graph network that guides a genetic search (A. Paliwal et al., *Reinforced Genetic
Algorithm Learning for Optimizing Computation Graphs*, ICLR 2020)."""
