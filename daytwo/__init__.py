"""Day-2 operations for GPU clusters: see a fault, ask the right person once, repair the node, prove it, return it."""

__version__ = "0.2.0"
