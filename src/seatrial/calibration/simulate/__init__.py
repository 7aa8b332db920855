"""Simulated machines of known truth, and the error rates of each rule."""
