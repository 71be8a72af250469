"""The rules of the game as pure functions on batches: no seats, opponents or resets."""
