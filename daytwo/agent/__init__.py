"""The agent of a node: looks, folds, spools, reports changes, answers requests. Standard library and pynvml only."""
