"""The parts of `benchmarks/soak_under_faults.py`: servers, clients, faults and the report."""
