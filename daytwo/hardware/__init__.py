"""Drivers: ways to act on a machine."""
