"""Resolution trees: all games that a host can be led into, as data, text and pictures."""
