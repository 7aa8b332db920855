"""Find what a first run on a system would trip over, before it costs a job."""
