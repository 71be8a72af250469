"""Rounds of sampling and fine-tuning a player that speaks; docs/text_players.md explains them."""
