"""``python -m sb3_ext.plot_train -a ddqn -e HironakaHost -f logs -o curve.png``."""

from sb3_ext.runs.command import start

if __name__ == "__main__":
    raise SystemExit(start("plot_train", "sb3_ext.training.zoo_scripts", "plot_train"))
