"""A whole step or reset by the backend's single operation, where it has one for what is played."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from resgym.envs.held import as_tensor
from resgym.kernels.step import GIVEN, Fields, Played, Seat, Started, StepPlan

if TYPE_CHECKING:
    from resgym.envs.alternating import AlternatingPlayers
    from resgym.envs.autoreset import TensorVectorEnv
    from resgym.envs.two_player import HironakaVectorEnv

__all__ = ["start_in_one_pass", "step_around_players", "step_in_one_pass", "step_plan"]


def step_plan(
    env: AlternatingPlayers | HironakaVectorEnv, seat: Seat, opponent: str | None
) -> StepPlan | None:
    """The plan of an environment's steps as it is now; None if its reward is a function.

    Args:
        env: the environment.
        seat: whose actions it takes.
        opponent: the `resgym.players.compiled_name` of who answers.
    """
    if not isinstance(env.reward, str):
        return None
    return StepPlan(
        spec=env.table.spec,
        start_spec=env.table.start_spec,
        seat=seat,
        opponent=opponent,
        reward=env.reward,
        invalid_action=env.invalid_action,
        autoreset_mode=env.autoreset_mode.name,
        max_episode_steps=env.max_episode_steps,
        scale_observation=env.scale_observation,
    )


Result = tuple[Any, Any, Any, Any, dict[str, Any]]


def step_in_one_pass(env: TensorVectorEnv, actions: torch.Tensor) -> Result | None:
    """Steps an environment, with the results that the same step has in parts.

    Args:
        env: the environment, not closed and started.
        actions: int64 [N], not checked otherwise.

    Returns:
        What ``step`` returns. None, with nothing changed, if the backend has no such operation or
        the step is to be refused: then the way in parts does the work, or finds the words.
    """
    play = env.table.backend.play_step
    plan = None if play is None else env._plan()
    if play is None or plan is None:
        return None
    played = play(plan, _fields(env), actions, env._memory)
    if played is None:
        return None
    _keep(env, played)
    return _results(env, played)


def step_around_players(env: AlternatingPlayers, actions: torch.Tensor) -> Result | None:
    """Steps an environment whose opponents have to be asked, by passes around their answer.

    Args:
        env: the environment, not closed and started.
        actions: int64 [N], not checked otherwise.

    Returns:
        As `step_in_one_pass`.
    """
    backend = env.table.backend
    plan = None if backend.takes_answers is None else step_plan(env, env.seat, GIVEN)
    if plan is None or backend.takes_answers is None or not backend.takes_answers(plan):
        return None
    if env.seat == "host":
        return _step_before_agents(env, plan, actions)
    # In NEXT_STEP a row may be played or started in one step: that is left to the way in parts.
    return None if plan.autoreset_mode == "NEXT_STEP" else _step_before_hosts(env, plan, actions)


def _step_before_agents(
    env: AlternatingPlayers, plan: StepPlan, actions: torch.Tensor
) -> Result | None:
    """The agents answer the sets that are about to be named, then the whole step is played."""
    assert env.table.backend.play_step is not None
    last = plan.spec.num_host_actions - 1
    in_range = (actions >= 0) & (actions <= last)
    if plan.invalid_action == "error" and not bool(in_range.all()):
        return None
    answers = env._answers(actions.clamp(0, last), in_range & ~env._ended)
    played = env.table.backend.play_step(plan, _fields(env), actions, env._memory, answers)
    if played is None:
        return None
    _keep(env, played)
    return _results(env, played)


def _step_before_hosts(
    env: AlternatingPlayers, plan: StepPlan, actions: torch.Tensor
) -> Result | None:
    """The agents' moves are played, ended rows started again, then the hosts name their sets."""
    table = env.table
    assert table.backend.play_step is not None
    assert table.backend.play_start is not None
    kept = env._snapshot()
    without_restarts = plan._replace(autoreset_mode="DISABLED")
    played = table.backend.play_step(without_restarts, _fields(env), actions, env._memory)
    if played is None:
        return None
    try:
        _keep(env, played)
        finished = as_tensor(played.terminated)
        if played.ended is None or plan.autoreset_mode == "DISABLED":
            env._host_names(~(table.coords.any(1) | finished))
            coords = _numbers(table.coords)
            return _results(env, played._replace(coords=coords))
        cut = as_tensor(played.truncated)
        if bool(cut.any()):
            # The last observation of a game that was cut shows the set that would be played.
            env._host_names(cut & ~table.coords.any(1))
        last, ended = _numbers(table.coords), as_tensor(played.ended)
        started = table.backend.play_start(_started_bare(env), _fields(env), ended, env._memory)
        assert started is not None
        _keep(env, started)
        env._host_names(~table.coords.any(1))
        coords = _numbers(table.coords)
        played = played._replace(
            points=started.points,
            coords=coords,
            final_points=played.points,
            final_coords=torch.where(ended[:, None], last, coords),
        )
        return _results(env, played)
    except BaseException:
        env._restore(kept)
        raise


def _started_bare(env: AlternatingPlayers) -> StepPlan:
    """The plan of starts in which no set is named."""
    plan = step_plan(env, "both", None)
    assert plan is not None
    return plan


def _numbers(coords: torch.Tensor) -> torch.Tensor:
    return coords.to(torch.int8)


def start_in_one_pass(env: TensorVectorEnv, mask: torch.Tensor) -> Any:
    """Starts episodes from random positions in the rows of ``mask``, bool [N].

    Returns:
        The observation of all rows. None, with nothing changed, if the backend has no such
        operation.
    """
    backend = env.table.backend
    start = backend.play_start
    plan = None if start is None else env._plan()
    asked = plan is None and backend.takes_answers is not None
    if asked:  # players who have to be asked name their sets afterwards
        plan = step_plan(env, "both", None)  # type: ignore[arg-type]
    if start is None or plan is None:
        return None
    started = start(plan, _fields(env), mask, env._memory)
    if started is None:
        return None
    _keep(env, started)
    coords = started.coords
    if asked:
        env._begin(mask)
        coords = _numbers(env.table.coords)
    give = _giver(env)
    return env._observation(give(started.points), give(coords))


def _fields(env: TensorVectorEnv) -> Fields:
    """The fields as tensors, or those of the last step as it left them if nobody looked at them."""
    table, held = env.table, env._held
    if held is not None and env.holds(held) and table.holds(held):
        return held
    return Fields(
        points=table.state.points,
        counts=table.state.count,
        coords=table.coords,
        half_moves=table.half_moves,
        seed=table.seed,
        episode=table.episode,
        key=table._episode_rng.key,
        returns=env._return,
        lengths=env._length,
        ended=env._ended,
    )


def _keep(env: TensorVectorEnv, done: Played | Started) -> None:
    env.table.hold(done.fields)
    env.hold(done.fields)
    env._memory = done.memory


def _giver(env: TensorVectorEnv) -> Callable[[Any], Any]:
    """What makes the environment's output of an array, or of a tensor on its device."""
    if env.output == "torch":
        return as_tensor
    return lambda given: given.cpu().numpy() if isinstance(given, torch.Tensor) else given


def _copy(given: Any) -> Any:
    return given.clone() if isinstance(given, torch.Tensor) else given.copy()


def _results(env: TensorVectorEnv, played: Played) -> Result:
    give = _giver(env)
    info: dict[str, Any] = {"overflow": give(played.overflow)}
    if played.ended is not None:
        info["episode"] = {
            "r": give(played.episode_returns),
            "l": give(played.episode_lengths),
        }
        info["_episode"] = give(played.ended)
        if played.final_points is not None:
            final = env._observation(give(played.final_points), give(played.final_coords))
            info["final_obs"], info["_final_obs"] = final, give(_copy(played.ended))
    if played.rewards is not None:
        info["rewards"] = give(played.rewards)
    return (
        env._observation(give(played.points), give(played.coords)),
        give(played.reward),
        give(played.terminated),
        give(played.truncated),
        info,
    )
