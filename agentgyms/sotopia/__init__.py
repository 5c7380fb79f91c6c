"""SOTOPIA: social dialogue with a partner and a judge (Zhou et al. 2024, arXiv:2310.11667)."""
