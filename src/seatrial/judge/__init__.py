"""The steps of the judge, from rows of numbers to findings.

`sampling` sorts rows by place and allocation on the scale of a criterion,
`place_groups` holds all places of one kind (of pairs: the parts of their paths, by
`network_parts` and `pair_effects`), `screening` tries those of the whole machine
together, `attribution` knows what a suspect explains, `verdicts` rules on each place,
`place_findings` turns rulings into findings.
`serial`, `levels`, `order_statistics`, `moderated_variances`, `majority`,
`multiple_testing` and `variance_components` are the statistics; `completeness` compares
what came with what was planned; `looks` keeps decisions.
"""
