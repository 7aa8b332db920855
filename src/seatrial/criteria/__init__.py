"""Criteria, weights and published numbers, read from YAML files."""
