"""Parsers: pure functions from a program's output to rows, strict about both."""
