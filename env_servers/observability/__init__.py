"""Observability: logs, metrics in Prometheus' format, memory of the processes."""
