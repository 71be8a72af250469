"""Bad arguments in Python: one line that names the field, the value and what is allowed."""

import re

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize

from sb3_ext.callbacks import Bound, Curriculum, RhoEvaluation, StopConditions
from sb3_ext.callbacks.base import Every
from sb3_ext.cluster import RayCollector
from sb3_ext.networks.any_size import AnySizeExtractor
from sb3_ext.networks.extractors import PointPairsExtractor, PointSetExtractor
from sb3_ext.networks.mlp import build_mlp
from sb3_ext.replay.prioritized import PrioritizedReplayBuffer
from sb3_ext.schedules.schedules import parse_schedule
from sb3_ext.two_player import HostAgentTrainer
from tests.fakes import ToyVectorEnv
from tests.sb3_ext.helpers import Diary, game_env, game_model, make_model
from tests.sb3_ext.replay.helpers import make as make_buffer
from tests.sb3_ext.two_player.helpers import tiny

SCALED = {"env": VecNormalize(game_env("host")), "policy": "HostPolicy"}
MODELS = [
    ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
    ({"gradient_steps": -2}, "gradient_steps"),
    ({"mask_source": "observation"}, "no entry action_mask or coords"),
    ({"max_grad_norm": 0.0}, "max_grad_norm"),
    ({"replay_buffer_class": int}, "must be a class of buffers, got <class 'int'>"),
    ({"replay_buffer_class": ReplayBuffer}, "class: ReplayBuffer cannot keep the legal"),
    ({"buffer_size": 1.5}, "buffer_size must be a whole number, got 1.5$"),
    ({"target_update_unit": "steps"}, "must be 'updates' or 'transitions', got 'steps'"),
    ({"tau": 1.5}, "tau must be at most 1, got 1.5"),
    ({"loss": "hubert"}, "unknown loss 'hubert'; did you mean 'huber'"),
    ({"train_freq": (1, "episode")}, "train_freq"),
    ({"train_freq": 0}, "train_freq"),
    # A word such as "no" would count as true.
    ({"policy_kwargs": {"dueling": "no"}}, "^dueling must be true or false, got 'no'"),
    ({"policy_kwargs": {"sort_axes": 1}}, "^sort_axes must be true or false, got 1"),
    ({"policy_kwargs": {"learning_rate_factors": {"q_nat": 2.0}}}, "unknown part 'q_nat'"),
    ({"policy_kwargs": {"optimizer_class": "adm"}}, "optimizer 'adm'; did you mean 'ada"),
    (SCALED, "^norm_obs: must be False"),
    ({"replay_ratio": 1.0, "gradient_steps": 2}, r"got 1\.0 together with gradient_steps=2"),
]
BUFFERS = [
    ({"slots": 0}, "buffer_size must be a whole number of at least 1, got 0"),
    ({"n_steps": 2}, "gamma must be a number, got None"),
    ({"optimize_memory_usage": True}, "optimize_memory_usage: got True"),
    ({"alpha": 1.5}, r"alpha must lie in \[0, 1\]"),
    ({"beta": 2.0}, "beta: values must lie in"),
    ({"priority_eps": 0.0}, r"priority_eps must lie in \(0"),
]
COLLECTORS = [
    ({"actors": -1}, "actors must be"),
    ({"actors": 10**9}, "actors must be at most 10000, got"),
    *(({name: 10**11}, f"{name} must be at most") for name in ("chunk", "games", "in_flight")),
    ({"max_staleness": 5}, "max_staleness: got 5; expected at least"),
    ({"epsilons": 0.4}, "epsilons must be a list"),
    ({"timeout_s": 1e30}, "timeout_s must be"),
    ({"env": "resgym/NoSuch-v0"}, "env: "),
    ({"deterministic": "no"}, "deterministic must be true or false, got 'no'"),
    ({"opponents": "random"}, "opponents"),
]
EVALUATIONS = [
    ({"opponents": []}, "opponents"),
    ({"opponents": "random"}, "opponents"),
    ({"best": "median"}, "best .*'median'"),
    ({"every": {"updates": 0}}, "every.updates"),
    ({"every": {"steps": 1000}}, "steps"),
    ({"games": 0}, "games"),
]
TRAINERS = [
    ({"callbacks": [Diary()]}, "callbacks must map roles to their callbacks, got"),
    ({"callbacks": {"host": ["timers"]}}, "callbacks: got 'timers'; expected callbacks of SB3"),
    ({"callbacks": {"guest": []}}, "guest"),
    ({"nets": [1]}, "nets must map roles to their nets, got"),
    ({"rewards": "step"}, "rewards must map roles to their rewards, got 'step'"),
]


def bound(**arguments):
    return {"condition": "bound", "field": "x", **arguments}


CONDITIONS = [
    ("bound", "until: .* condition"),
    ({"field": "x"}, r"condition \(bound, converged\)"),
    (bound(low=1), "'lower'"),
    ({"condition": "bound", "lower": 1}, "'field'"),
    (bound(), "lower, upper"),
    (bound(lower=2, upper=1), "upper"),
    ({"condition": "converged", "field": "x", "window": 1}, "window"),
]
NEVER = Bound("x", lower=1)
STAGES = [
    ([], "stages"),
    ([{}, {}], "stages: .*'until'"),
    ([{"until": NEVER}], "stages: .*'until'"),
    ([{"until": 5}, {}], r"stages\[0\].until"),
    ([{"until": NEVER}, {"num_points": 99}], "num_points .* 99"),
    ([{"points": 3}], "points"),
]
LAYERS = [
    ("256", "net_arch"),
    (["b"], r"net_arch\[0\].*'b'"),
    ([8, "b", "ln"], r"net_arch\[2\].*'ln'"),
    ([4, {"repeat": 2, "net_arch": [4, "y"]}], r"net_arch\[1\]\.net_arch\[1\]"),
    ([{"repeat": 0, "net_arch": [4]}], r"net_arch\[0\]\.repeat"),
    ([{"repaet": 2, "net_arch": [4]}], r"net_arch\[0\] .*'repaet'"),
    ([1] * 20_000, "at most 1000 layers"),
    ([{"repeat": 10**18, "net_arch": [{"repeat": 10**18, "net_arch": []}]}, 0], r"\[1\]"),
    ([2**20, 2**20], "weights"),
]
POINTS = spaces.Box(-1.0, 1.0, (6, 3), np.float32)
FLAT, NONE = spaces.Box(-1, 1, (6,)), spaces.Dict(coords=spaces.MultiBinary(3))
EXTRACTORS = [
    ((PointSetExtractor, FLAT), "point_set .* Box"),
    ((PointSetExtractor, NONE), "'points'"),
    ((PointSetExtractor, POINTS, {"head_net": ("x",)}), r"net_arch\[0\]"),
    ((PointPairsExtractor, POINTS, {"pair_net": (8, "b")}), "pair_net: .* 'b'"),
    ((PointPairsExtractor, POINTS, {"quotients": [0, 1]}), "^quotients must be true or fal"),
    *(((AnySizeExtractor, POINTS, {"width": width}), "width must") for width in (0, 1.5)),
]
LINEAR = {"schedule": "linear", "init": 1, "final": 0}
SCHEDULES = [
    ("1e-4", "'1e-4' .*write 1.0e-4"),
    ("linear_1e-3", "unknown schedule 'linear'; did you mean 'lin'"),
    ("exp_1", "'exp_1': .*'final' and 'rate'"),
    ("lin_1_nan_5", "final must lie in"),
    ("exp_1_0_1.5", r"rate must lie in \(0, 1\], got 1.5"),
    ("lin_1_0_2.5", "steps must be a whole number of at least 1, got 2.5"),
    ("lin_1_0_1e20", "steps must be at most 4611686018427387904"),
    ({"schedule": "exponential", "init": 1, "final": 0, "rat": 1}, "did you mean 'rate'"),
    (LINEAR, "steps is missing: the number of updates"),
    ({"schedule": "chained", "pieces": [[5, "exp_1"]]}, r"pieces\[0\]\.then: 'exp_1'"),
    ({"schedule": "chained", "pieces": [[1, 1], [0, 1]]}, r"pieces\[1\]\.steps"),
    ({"schedule": "chained", "pieces": [[None, 1], [5, 1]]}, r"pieces\[0\]\.steps is missing"),
    ([1.0], "value must be a number, got"),
    (True, "value must be a number, got"),
]


def collector(env=ToyVectorEnv, **arguments):
    given = {"actors": 2, "chunk": 10, "sync_updates": 10, "max_staleness": 60, **arguments}
    return RayCollector(env, **given)


def evaluation(**arguments):
    return RhoEvaluation(**{"opponents": ["random"], "every": Every(updates=1), **arguments})


CALLS = {
    "a model": (lambda given: make_model(**given), MODELS),
    "a buffer": (lambda given: make_buffer(PrioritizedReplayBuffer, **given), BUFFERS),
    "a collector": (lambda given: collector(**given), COLLECTORS),
    "an evaluation": (lambda given: evaluation(**given), EVALUATIONS),
    "a trainer": (lambda given: HostAgentTrainer(tiny(), **given), TRAINERS),
    "conditions": (lambda until: StopConditions(until=until), CONDITIONS),
    "stages": (lambda stages: game_model().learn(80, Curriculum(stages)), STAGES),
    "layers": (lambda net_arch: build_mlp(3, net_arch), LAYERS),
    "an extractor": (lambda given: given[0](given[1], **dict(*given[2:])), EXTRACTORS),
    "a schedule": (lambda form: parse_schedule(form, "learning_rate"), SCHEDULES),
}
CASES = [(name, *row) for name, (_, rows) in CALLS.items() for row in rows]


@pytest.mark.parametrize(("name", "given", "message"), CASES)
def test_it_is_named_in_one_line(name, given, message):
    with pytest.raises((TypeError, ValueError)) as error:
        CALLS[name][0](given)
    assert re.search(message, str(error.value))
    assert "\n" not in str(error.value)
    assert name != "a schedule" or str(error.value).startswith("learning_rate: ")
