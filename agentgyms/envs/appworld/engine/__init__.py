"""The real AppWorld engine, in separate processes; only the evaluators have the ground truth."""
