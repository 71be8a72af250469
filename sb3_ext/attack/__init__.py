"""A fair attack: the worst opponent of a frozen player, found with a stated budget."""
