"""Networks: the `net_arch` language (`mlp.py`), features extractors and optimisers by name."""
