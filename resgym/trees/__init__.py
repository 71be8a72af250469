"""Resolution trees: all games of a host, as data, text and pictures."""
