"""The system under test: its description, Slurm, Ansible and Spack."""
