"""``python -m sb3_ext.population``."""

from sb3_ext.runs.command import start

if __name__ == "__main__":
    raise SystemExit(start("population", "sb3_ext.population.cli"))
