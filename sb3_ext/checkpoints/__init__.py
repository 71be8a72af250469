"""Checkpoints from which training resumes exactly, and their files."""
