"""Parsers of what tools print about a fabric: devices, ports, links, subnet managers.

The text is the whole output of the tool. Output that is cut off is refused with its
line: a cable that was not printed is not a cable that is missing.
"""
