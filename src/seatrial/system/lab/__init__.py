"""The lab: a cluster of containers inside one machine, for the role `lab`."""
