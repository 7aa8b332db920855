"""Parsers of what tools print about HCAs, their links, and nodes.

The text is the whole standard output of the tool, with its last newline: a text that
ends in the middle of a line is cut off and refused. Fields that a tool leaves out are
None.
"""
