"""Plays one game between two scripted players and prints it move by move."""

import gymnasium

import resgym  # registers the environments


def main(seed: int = 0) -> int:
    env = gymnasium.make("resgym/HironakaHost-v0", opponent="choose_first", render_mode="ansi")
    host = resgym.make_host("zeillinger")
    env.reset(seed=seed)
    print(env.render())
    moves, terminated, truncated = 0, False, False
    while not (terminated or truncated):
        # A player answers for many games at once; here the batch is one game.
        games = env.get_wrapper_attr("games")
        action = int(host.act(games.position, None, games.rng(resgym.Stream.HOST)))
        _, _, terminated, truncated, _ = env.step(action)
        moves += 1
        print(env.render())
    print(f"{'finished' if terminated else 'cut'} after {moves} moves")
    return moves


if __name__ == "__main__":
    main()
