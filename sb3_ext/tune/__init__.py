"""Search of hyperparameters by Optuna, by many workers; see docs/tuning.md."""
