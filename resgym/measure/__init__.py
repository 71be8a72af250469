"""How good players are: rho, whole games, plots, moves per second."""
