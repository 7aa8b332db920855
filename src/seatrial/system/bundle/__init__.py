"""One folder with everything that a system without internet needs."""
