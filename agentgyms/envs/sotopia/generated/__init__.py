"""Generated encounters with computable goals, a scripted partner, a programmatic judge, experts."""
