"""Train one network in several processes, each with games, a replay buffer and a device of its own.

    torchrun --nproc-per-node 2 examples/torchrun_ddqn.py

Every update uses the mean of the processes' gradients, so their weights stay equal.
"""

import argparse
import os
from collections.abc import Iterable

import gymnasium
import torch
import torch.distributed.nn.functional  # imported later, it keeps the group for ever
from torch import Tensor, distributed, nn

import resgym
from sb3_ext.adapter import TensorVecEnv
from sb3_ext.callbacks.evaluation import player_of
from sb3_ext.ddqn import DDQN


def average_gradient(parameter: Tensor) -> None:
    """Replaces the gradient by its mean over the processes, before it is clipped."""
    gradient = parameter.grad
    assert gradient is not None
    distributed.all_reduce(gradient)
    gradient /= distributed.get_world_size()


def learn_together(network: nn.Module) -> None:
    """From now on `backward` of this network averages its gradients over the processes."""
    for parameter in network.parameters():
        parameter.register_post_accumulate_grad_hook(average_gradient)


def are_equal(tensors: Iterable[Tensor]) -> bool:
    """Whether all processes have these tensors, bit for bit."""
    mine = torch.cat([tensor.detach().flatten().cpu().view(torch.uint8) for tensor in tensors])
    first = mine.clone()
    distributed.broadcast(first, 0)
    differences = (mine != first).sum()
    distributed.all_reduce(differences)
    return int(differences) == 0


def main(timesteps: int = 200_000, games: int = 128, batch_size: int = 512, seed: int = 0) -> None:
    """Trains; all numbers count all processes."""
    gpus = torch.cuda.is_available()
    distributed.init_process_group("cpu:gloo,cuda:nccl" if gpus else "gloo")
    rank, size = distributed.get_rank(), distributed.get_world_size()
    device = f"cuda:{os.environ['LOCAL_RANK']}" if gpus else "cpu"
    model = DDQN(
        "HostPolicy",
        TensorVecEnv(
            gymnasium.make_vec(
                "resgym/HironakaHost-v0",
                num_envs=games // size,
                device=device,
                opponent="choose_first",
                reward="step",
            )
        ),
        learning_rate=5e-4,
        exploration_rate="lin_0.5_0.02_1000",
        learning_starts=timesteps // 40 // size,
        batch_size=batch_size // size,
        gamma=0.97,
        gradient_steps=2,
        target_update_interval=200,
        policy_kwargs={"extractor": "point_set", "net_arch": [128]},
        device=device,
        seed=seed + rank,  # other games in each process
    )
    for tensor in model.policy.state_dict().values():
        distributed.broadcast(tensor, 0)
    learn_together(model.q_net)
    model.learn(timesteps // size)
    assert are_equal(model.policy.state_dict().values())
    if rank == 0:
        model.save("torchrun_ddqn")
        result = resgym.rho(player_of(model), "choose_first", games=2_000)
        print(f"{size} processes, {model.num_updates} updates each, equal weights; {result}")
    distributed.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="train one network in several processes")
    parser.add_argument("--timesteps", type=int, default=200_000, help="transitions of all")
    timesteps = parser.parse_args().timesteps
    if "RANK" not in os.environ:
        parser.error("start it with torchrun, as its first lines show")
    main(timesteps)
