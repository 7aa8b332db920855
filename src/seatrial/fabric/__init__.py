"""The fabric: what is cabled, against its plan, and against Slurm's topology."""
