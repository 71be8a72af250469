"""Selection over many two-player runs; `docs/population.md` explains it."""
