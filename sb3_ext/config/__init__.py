"""Configuration: sections, files, command-line changes, checks and registries."""
