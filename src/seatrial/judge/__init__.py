"""The steps of the judge, from rows of numbers to findings.

`sampling` sorts rows by place and allocation, `scale` puts them on the scale of a
criterion, `groups` holds all places of one kind, `convict` tries those of the whole
machine together, `rulings` says what becomes of each, `place_findings` turns that into
findings. `bounds`, `families` and `spread` are the statistics.
"""
