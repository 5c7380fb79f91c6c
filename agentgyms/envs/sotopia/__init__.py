"""SOTOPIA: social dialogue with a partner and a judge (Zhou et al. 2024, arXiv:2310.11667).

Takes the act of one person; returns the acts of the others, and ratings at the end. `simulator`
plays the dialogue, `partner_judge` are the others, `generated` has encounters with computable
goals.
"""
