"""What a search has proved, as a file that a hundred lines of Python check."""
