"""The server behind ``resgym serve``, a page to play and explore. It keeps no games."""
