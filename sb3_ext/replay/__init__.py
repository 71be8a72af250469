"""Replay buffers whose transitions are tensors."""
