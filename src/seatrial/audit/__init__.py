"""Settings of nodes and HCAs, compared with the declaration and among the nodes."""
