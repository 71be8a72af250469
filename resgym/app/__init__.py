"""The game in a terminal, and the server behind ``resgym serve``: a page, which keeps no games."""
