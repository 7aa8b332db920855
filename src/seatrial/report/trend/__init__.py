"""The trend of a system over its runs: page, chart, table."""
