"""A game in the terminal, with hints."""
