"""A page to play and explore: the server behind ``resgym serve``, which keeps no game."""
