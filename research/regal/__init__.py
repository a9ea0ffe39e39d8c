"""REGAL's sets of graphs (A. Paliwal et al., ICLR 2020, A.1)."""
