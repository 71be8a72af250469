"""What a tree tells of its singularity: fans, smooth charts, invariants, surfaces, scripts."""
