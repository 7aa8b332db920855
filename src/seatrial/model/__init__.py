"""Records, metrics, units and places: what the other packages speak of."""
