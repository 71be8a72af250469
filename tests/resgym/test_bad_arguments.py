"""Arguments that a function cannot take: one line that names the argument and what is allowed."""

import math
import pickle
import types
from functools import partial, reduce

import gymnasium
import numpy as np
import pytest
import torch

import resgym
from resgym import GameSpec, make_agent, make_host, register_reward, solve
from resgym.benchmark import evaluate, load
from resgym.pictures.games import picture_of
from resgym.players import resolve_player
from resgym.players.registry import register_host
from resgym.players.scripted import RandomAgent
from resgym.polynomials.singularities import random_family, singularity, singularity_names
from resgym.testing import check_player
from tests.resgym.geometry.test_surface import grown


def make(seat, **arguments):
    return gymnasium.make(f"resgym/Hironaka{seat}-v0", **arguments)


def nested(depth):
    return reduce(lambda inner, _: [inner], range(depth), 1)


def invariants(start):
    return resgym.resolution_tree(start).invariants()


def exposed(policy="zeillinger", starts=2, **options):
    return resgym.exploitability(policy, starts, **options)


rho = partial(resgym.rho, host="random", agent="random", games=5)
cross_play = partial(resgym.cross_play, agents=["random"], games=5)
tree = partial(resgym.resolution_tree, "E8")
small = partial(solve, [(3, 1), (0, 2)])
game = solve("E8", agent="choose_first").tree
polyhedra = partial(resgym.resolution_tree, "x^4+y^4", "random", rule="polyhedra", unit=8)
BROKEN = torch.nn.Linear(3, 4)
torch.nn.init.constant_(BROKEN.weight, math.nan)

start = resgym.state_from_points([(3, 1), (0, 2)], GameSpec(2))
axis = torch.tensor([1])
move = resgym.functional.move
host = partial(make, "Host")
make_vec = partial(gymnasium.make_vec, "resgym/HironakaHost-v0", 2)
SIZED = host, make_vec, rho, partial(cross_play, ["random"]), GameSpec
from_points = partial(resgym.state_from_points, [(3, 1)], GameSpec(2))
thom = partial(resgym.state_from_points, [(3, 1)], GameSpec(2, rule="thom"), "cpu")
DEVICES = [*SIZED[:-1], from_points, start.to, partial(check_player, make_host("random"))]
if torch.cuda.is_available():
    DEVICES = []

CASES = [
    (lambda: rho(max_moves=0), "^max_moves must be at least 1, got 0$"),
    (lambda: rho(seed=-1), "^seed must be at least 0, got -1$"),
    (lambda: rho(points=[(1, 2)]), r"^points\[0\] must have 3 coord.* got 2: \[1, 2\]$"),
    (lambda: rho(agent=3), "^agent must be a name"),
    (lambda: rho(optimum=1), "^optimum must be True, False or two bounds, got 1$"),
    (lambda: rho(agent=make_host("random")), "^agent must play the agent"),
    (lambda: cross_play([]), "hosts must"),
    (lambda: cross_play(None), "hosts must be a list or a dict of players, got None"),
    (lambda: GameSpec(np.eye(3)), r"^dimension must be an integer, got array.* \(ndarray\)$"),
    (lambda: solve([(1, np.ones(2)), (2, 0)]), r"^points\[0\] must hold integers, got array"),
    (lambda: make_host(np.eye(3)), r"^host must be a name, got array.* \(ndarray\)$"),
    (lambda: solve("E8", "width"), "objective must be .*, got 'width'"),
    (lambda: solve("E8", "nodes", max_depth=3), "max_depth is for objective 'depth'"),
    (lambda: solve("E8", max_positions=0), "max_positions must be at least 1, got 0"),
    (lambda: solve("E8", agent="random", host="random"), "must not both be given"),
    (lambda: solve("E6", "leaves", agent="choose_first"), "^objective must be "),
    (lambda: small(rule="polyhedra", host="all_coord"), "host are for rule 'basic'.*, got"),
    (lambda: small("leaves", stop="smooth"), "with rule basic with stop or centres, got 'leaves'"),
    (lambda: make_host("safe", agents=[]), "^agents must be at least one player"),
    (lambda: small(weights=[1, 1]), "weights are for rule 'thom', got rule 'basic'"),
    (lambda: small(rule="thom", weights=[1]), r"weights must be 2 integers .dimension., got \[1\]"),
    (lambda: small(rule="thom", weights=5), "^weights must be 2 integers .*, got 5$"),
    (lambda: thom([1, None]), "^weights must hold integers, got None"),
    (
        lambda: thom([1, 2**70]),
        "^weights must hold integers in 0..2.59, got 1180591620717411303424$",
    ),
    (lambda: tree(max_depth=-1), "max_depth must be at least 0, got -1"),
    (lambda: tree(max_nodes=0), "max_nodes must be at least 1, got 0"),
    (lambda: tree(seed=-1), "seed must be between 0"),
    (lambda: tree().compare("nobody"), "'nobody'"),
    (lambda: tree(max_depth=2).log_canonical_threshold(), "^tree must be resolved"),
    (game.fan, "^tree must follow all answers"),
    (game.log_canonical_threshold, "^tree must follow all answers"),
    *(
        (partial(getattr(game, form), max_charts=0), "max_charts must be at least 1, got 0")
        for form in ("to_svg", "to_html", "to_text", "to_latex")
    ),
    (lambda: tree(stop="flat"), r"^stop must be one of \['smooth'"),
    (lambda: tree(centres="flat"), r"^centres must be one of \['all'"),
    (lambda: solve("E8", rule="polyhedra", stop="smooth"), "^stop and centres are for rule"),
    (lambda: solve("E8", host="all_coord", stop="smooth"), "^agent and host .*, stop smooth,"),
    (lambda: resgym.resolution_tree("x^2, y^2", stop="smooth"), "^stop is for .* got an ideal"),
    # The ray of this edge lies too deep to see whether a polynomial is degenerate on it.
    (lambda: solve("x^2+x*y^20001+y^40002", stop="smooth"), "^points must have exponents of at"),
    (lambda: tree().to_script("xy"), "^ending must be one of sing, m2, sage, jl, pl, got 'xy'$"),
    (lambda: polyhedra().to_script("sage"), "^tree must be of rule basic, got polyhedra$"),
    (lambda: game.to_script("m2"), "^tree must follow all answers"),
    (lambda: tree(max_depth=2).invariants(), "^tree must be resolved .* depth after 2 moves"),
    (lambda: tree(stop="smooth").invariants(), "^tree must be resolved .* smooth after 3 mo"),
    (lambda: game.invariants(), "^tree must follow all answers"),
    (lambda: polyhedra().invariants(), "^tree must be of rule basic, got polyhedra"),
    (lambda: invariants([[0, 0], [1, 0]]), "^polynomial must be 0 at the origin"),
    *(
        (lambda c=c: invariants("x^2*y^3").multiplier_ideal(c), "^c must be .* and below 1, got")
        for c in (1, "1/0", 2 / 3)
    ),
    (lambda: invariants("x, y").multiplier_ideal(10**4), "^exponents, and c, must lead to at most"),
    (lambda: grown("T2,3,7").surface_graph().seifert(), "^graph must be a star with a centre"),
    *(
        (lambda more=more: small(**more).certificate(), "^certificate: only the optimum")
        for more in (
            {"max_depth": 9},
            {"host": "zeillinger"},
            {"agent": "choose_first"},
            {"rule": "polyhedra"},
        )
    ),
    (lambda: pickle.loads(pickle.dumps(small())).certificate(), "^certificate: only the optimum"),
    (lambda: exposed(starts=0), "starts must"),
    (lambda: GameSpec(rule="polyhedra", reposition=True), "^reposition must be False with rule"),
    (lambda: exposed(starts=[]), "points must"),
    *(
        (partial(exposed, seconds=given), "seconds must be at least 0 seconds, got")
        for given in (-1, "long", math.nan)
    ),
    (lambda: exposed(progress=lambda line: None), "progress must be a function"),
    (lambda: exposed(positions=0), "positions must be at least 1"),
    (lambda: exposed(spec=GameSpec(polytope="newton")), "polytope: got newton; expected domin"),
    (lambda: exposed("all_coord", spec=GameSpec(rule="polyhedra")), "rule 'basic'"),
    (lambda: exposed(lambda state, coords, rng: 99 + 0 * state.count), "answered 99 in row 0"),
    (lambda: exposed(BROKEN), "finite scores, got NaN"),
    (lambda: exposed(torch.nn.Threshold(9, math.nan)), "finite scores"),
    (lambda: exposed(torch.nn.Linear(60, 4)), r"Linear cannot score points \[N, 20, 3\]: mat1 a"),
    (lambda: exposed("zeilinger"), "policy must be one of"),
    (lambda: exposed("./nowhere.zip"), "no saved model"),
    (lambda: exposed(3), "policy must be a name, a Player"),
    (lambda: exposed(types.SimpleNamespace(predict=print)), "policy must be a name, a Player"),
    (lambda: register_reward("terminal"), "already taken by another reward"),
    (lambda: polyhedra().log_canonical_threshold(), "resolved in every chart"),
    (lambda: grown("x^2+y^3").surface_graph(), "^tree must have 3 variables, got 2$"),
    (lambda: grown("x^2*y+z^3").surface_graph(), "^singularity must be isolated: along y at least"),
    (lambda: picture_of([], (), 0), "^points must have 2 or 3 axes to be drawn, got 0$"),
    (lambda: picture_of([(1, 0, 0, 0)], (), 0), "^points must have 2 or 3 axes .*, got 4$"),
    (lambda: make_agent("optimal", budget=0), "budget must be .*got 0"),
    (lambda: make_host("optimal", objective="size"), "objective must be .*got 'size'"),
    (lambda: make_host("optimal", fallback="nobody"), "^fallback must be .*got 'nobody'"),
    (lambda: make_host("safe", lookahead=0), "lookahead must be .*got 0"),
    (lambda: make_host("zeilinger"), r"'zeilinger' \(did you mean 'zeillinger'"),
    (lambda: make_host(3), r"host must be a name, got 3 \(int\)"),
    (lambda: make_host("./none"), "^host: there is no saved model at './none'$"),
    (lambda: make_host("./none", depth=3), "keyword argument 'depth'; allowed are none$"),
    (lambda: make_host("safe(agents='./none')"), "^agents: there is no saved model at './none'$"),
    (lambda: make_host("random", depth=3), "keyword argument 'depth'; allowed are none$"),
    (lambda: make_host("optimal(speed=1)"), "'speed'; allowed are objective, budget, fallback$"),
    (lambda: make_host("safe(lookahed=1)"), "'lookahed' .did you mean 'lookahead'"),
    (lambda: make_agent("zeillinger"), r"^agent must be one of \['any.* got the host 'zeill"),
    (lambda: make_host("greedy_points"), r"^host must be one of \['all_.* got the agent 'greedy"),
    *((partial(call, dim=3), "argument 'dim' .did you mean 'dimension'") for call in SIZED),
    *((partial(call, dim=3), "argument 'dim'; allowed are points, ") for call in (tree, small)),
    *((partial(call, device="cuda"), "^device must be .*, got 'cuda'$") for call in DEVICES),
    (lambda: host(opponent=lambda state: 0), r"function \(state, coords, rng\), got <l.*\(s"),
    (lambda: host(reward=lambda a, b: 0), r"name or a function \(transition\), got <l.*\(a"),
    (lambda: register_reward("x")(lambda: 0), r"^x must be a function \(transition\), got <"),
    (lambda: rho(progress=True), r"^progress must be a function \(line\), got True$"),
    (lambda: small(progress=True), r"^progress must be a function \(state\), got True$"),
    *(
        (partial(host, **{name: None}), f"^{name} is for make_vec")
        for name in ("num_envs", "output", "autoreset_mode")
    ),
    (lambda: host(opponent=RandomAgent), r"did you mean RandomAgent\(\)"),
    (lambda: host(opponent="zeillinger"), r"^opponent must be one of .* got the host 'zeill"),
    (lambda: host(reward="Terminal"), "did you mean 'terminal'"),
    (lambda: host(render_mode="rgb"), "did you mean 'rgb_array'"),
    (lambda: make("Agent").reset(options={"point": []}), "'point' .did you mean 'points'"),
    (lambda: host().reset(options={"points": "E8"}), r"did you mean resgym.parse\('E8'\)"),
    (lambda: host().reset(options={"points": nested(5_000)}), r"got 1: (a value that |\[\[)"),
    (lambda: cross_play("zeillinger"), "^hosts must be a list or a dict of players, got 'zeill"),
    (lambda: cross_play(make_host("random")), "^hosts must be a list or a dict of players, got"),
    (lambda: move(start, torch.tensor([2]), axis), r"^coords must be torch.bool \(1, 2\), got"),
    (lambda: move(start, start.points[:, 0] > 0, [1]), "^axis must be a tensor, got list$"),
    *(
        (partial(make_host, text), r"host must be a name or written like 'safe\(budget=9")
        for text in ("optimal(", "optimal(7)", "optimal(budget=x)", "optimal(budget=1)x")
    ),
    (lambda: resolve_player("optimum(budget=1)", "host"), "did you mean 'optimal'"),
    (lambda: register_host("random"), "'random' is already taken by another host"),
    (lambda: resolve_player("random", "both"), r"role must be one of \['host', 'agent'\]"),
    (lambda: singularity_names("unimodal"), "kind must be one of "),
    (lambda: singularity(8), "name must be text"),
    (lambda: singularity("E15"), "^name must be .*got 'E15'"),
    (lambda: singularity(""), "^name must be .*got ''"),
    (lambda: singularity("A999999999999999999"), "^name must be .*n < 2.59"),
    (lambda: singularity("T2,3,5"), "^name must be .*1/p"),
    (lambda: singularity("T3,4"), "^name must be .*T_p,q,r"),
    (lambda: random_family("random(points=1)"), "points must be between 2 and 1024, got 1"),
    (lambda: random_family("random(foo=3)"), "points=<number>, max=.*, got 'random\\(foo=3\\)'"),
    (lambda: random_family("random(points=20,max=1,dim=2)"), "no unfinished position"),
    (lambda: random_family("bp(2)"), "points must have 2 to 10 variables, got 1"),
    (lambda: random_family("cyclic(5)"), "family must be"),
    (lambda: evaluate("taught", "worst"), "task must be one of .*, got 'worst'"),
    (lambda: load("worst"), "part must be one of .*, got 'worst'"),
    (lambda: load("worst-5", "all"), "split must be one of .*, got 'all'"),
    (lambda: load("worst-5", "train"), "folder: got none; .* --config worst-5 --out"),
]


@pytest.mark.parametrize(("call", "message"), CASES, ids=[message for _, message in CASES])
def test_one_line_names_the_argument(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
