"""Charts, text and HTML that every kind of page shares."""
