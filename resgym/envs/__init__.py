"""The games as Gymnasium environments."""
