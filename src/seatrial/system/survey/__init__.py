"""Read a cluster through its login node, and write an inventory for it."""
