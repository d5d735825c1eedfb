"""Loops that keep repairs what they should be, each under a lease."""
