"""Adapters to schedulers: facts, workloads, and descriptions of writes."""
