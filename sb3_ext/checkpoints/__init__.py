"""Checkpoints that training goes on from exactly, and how they are stored."""
