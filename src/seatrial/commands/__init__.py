"""The commands of `seatrial`, one module each."""
