"""Comparing systems in a bake-off: sides, paired numbers, scores and a winner."""
