"""Learning rates and exploration rates as functions of how far training has come."""
