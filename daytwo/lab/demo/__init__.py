"""`make demo`: a node breaks, is repaired and returns. One program, told over a simulated fleet or a real Slurm."""
