"""``python -m sb3_ext``: the commands of this package, ``python -m sb3_ext.NAME`` each."""

COMMANDS = {
    "train": "train one player, with rl_zoo3's options",
    "enjoy": "let a trained player play, with rl_zoo3's options",
    "quickstart": "train a host for half a minute and measure it",
    "two_player": "train a host and an agent against each other",
    "population": "train several players against each other",
    "teach": "learn from the solver's moves",
    "attack": "find a player's worst opponent",
    "tune": "search for hyperparameters",
    "curves": "learning curves of finished runs",
    "plot_train": "rl_zoo3's plots of training",
    "record_video": "record a trained player, with rl_zoo3's options",
}
"""What can be run, with one line of help each."""

if __name__ == "__main__":
    print("python -m sb3_ext.COMMAND --help tells more of each command:\n")
    for name, text in COMMANDS.items():
        print(f"  {name:13} {text}")
