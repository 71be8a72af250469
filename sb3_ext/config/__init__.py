"""Configuration: sections, files, changes on the command line, checks and registries."""
