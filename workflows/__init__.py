"""Durable state machines: deterministic, one per file."""
