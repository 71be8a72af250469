"""One run: its folder and who may write to it, where it comes from, what stops it."""
