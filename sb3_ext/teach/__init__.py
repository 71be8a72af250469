"""Learning from the solver: positions with their best moves, and what a network learns by them."""
