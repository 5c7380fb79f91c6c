"""The audit of credit: the worth of turns by executed continuations, against their credit."""
