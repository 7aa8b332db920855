"""Every night: some nodes are measured, changes are found, people are told."""
