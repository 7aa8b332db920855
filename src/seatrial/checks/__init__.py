"""Base classes of the ReFrame checks, the catalogue of checks, and replays."""
