"""Baselines, detection limits, simulated machines and planted faults."""
