"""Training from the command line: configuration files, rl_zoo3, saved players."""
