"""Studies of this one game: taught players, attacks, tables and the results page."""
