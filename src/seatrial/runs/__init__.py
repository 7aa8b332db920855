"""Run folders: write, close, read, verify, sign, pack, import and export them."""
