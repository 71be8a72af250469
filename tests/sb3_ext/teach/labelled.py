"""A configuration for small solved positions."""

NETWORK = """
default:
  policy: {seat}Policy
  n_timesteps: 1000
  gamma: 0.97
  env_kwargs: {{reward: step}}
  policy_kwargs:
    extractor: point_pairs
    features_extractor_kwargs:
      {{point_net: [16], pair_net: [16], context_net: [32], head_net: [32]}}
    net_arch: [32]
    dueling: true
"""


def config(folder, seat="host"):
    """Few positions, a small network, a few updates of each of two rounds."""
    file = folder / f"{seat}.yml"
    file.write_text(NETWORK.format(seat=seat.title()))
    start = {"points": [2, 4], "max_value": [3], "positions": 60}
    met = {"positions": 20, "points": [4, 4], "max_value": [4]}
    game = {"hosts": ["student"], "moves": [0, 6]}
    if seat == "agent":
        game = {"hosts": ["zeillinger", "random"], "agents": ["student"], "moves": [0, 6]}
    return {
        "seat": seat,
        "dimension": 3,
        "budget": 2000,
        "rounds": [[start], [{**met, **game}]],
        "algorithm": str(file),
        "updates": 20,
        "batch_size": 32,
        "learning_rate": "cos_5e-3_1e-4",
        "temperature": 0.1,
        "value_weight": 0.3,
        "max_grad_norm": 10.0,
        "every": 10,
        "seed": 0,
    }
