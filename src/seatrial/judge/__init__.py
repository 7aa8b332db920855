"""The steps of the judge, from rows of numbers to findings.

`sampling` sorts rows by place and allocation on the scale of a criterion,
`place_groups` holds all places of one kind, `screening` tries those of the whole
machine together, `verdicts` rules on each place, `place_findings` turns rulings into
findings.
`bounds`, `multiple_testing` and `variance_components` are the statistics.
"""
