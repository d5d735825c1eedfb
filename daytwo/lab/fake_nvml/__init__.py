"""A libnvidia-ml.so.1 without GPUs, for tests and for the demo on a real Slurm. See `harness`."""
