"""Stability phases: failures by cause, availability, and demonstration tests."""
