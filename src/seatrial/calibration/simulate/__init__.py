"""Machines whose truth is known, and how often each rule judges them wrongly."""
