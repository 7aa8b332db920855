"""The protocol of an acceptance: a folder that the parties sign as a whole."""
