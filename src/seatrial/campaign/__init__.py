"""Run a campaign: schedule, ReFrame sessions, Slurm jobs, collection, status."""
