# SPDX-License-Identifier: BSD-3-Clause
"""Cart-pole swing-up learnt by proximal policy optimisation (PPO), in PyTorch on the CPU.

Run it with ``python examples/ppo_swing_up.py``; it trains for a minute or two, lets 64 carts start
from hanging, says how many stand at the end, and writes a plot. ``--no-plots`` does without
matplotlib. It needs ``pip install "phistar[gym]" torch``.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from phistar.envs import RobotVectorEnv

TASK = "phistar/CartPoleSwingUp-v0"
ENVS, STEPS, UPDATES = 256, 64, 70
EPOCHS, BATCHES = 6, 8
RATE, DISCOUNT, TRACE = 2e-3, 0.99, 0.95
CLIP, ENTROPY, SEED = 0.2, 0.002, 0


class Agent(nn.Module):
    """A policy with a normal distribution of actions, and a guess of what follows from a state."""

    def __init__(self, seen: int, actions: int, scale: Tensor) -> None:
        super().__init__()

        def net(outputs: int) -> nn.Sequential:
            return nn.Sequential(
                nn.Linear(seen, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)
            )

        self.mean, self.value = net(actions), net(1)
        self.log_deviation = nn.Parameter(torch.zeros(actions))
        self.scale = scale
        with torch.no_grad():
            self.mean[-1].weight.mul_(0.01)

    def policy(self, x: Tensor) -> torch.distributions.Normal:
        """Of actions in parts of their bounds."""
        return torch.distributions.Normal(self.mean(x), self.log_deviation.exp())

    def act(self, x: np.ndarray) -> np.ndarray:
        """The most likely actions."""
        with torch.no_grad():
            return (self.mean(torch.as_tensor(x)) * self.scale).numpy()


@dataclass
class Rollout:
    """What a batch of robots did: arrays (steps, robots, ...)."""

    seen: Tensor
    action: Tensor
    log_chance: Tensor
    advantage: Tensor
    value: Tensor
    mean_reward: float


def collect(envs: RobotVectorEnv, agent: Agent, x: np.ndarray) -> tuple[Rollout, np.ndarray]:
    """Let the robots run for some steps; returns where they are then, too."""
    seen, actions, chances, values, rewards, ends, paid = [], [], [], [], [], [], []
    for _ in range(STEPS):
        with torch.no_grad():
            state = torch.as_tensor(x)
            policy = agent.policy(state)
            action = policy.sample()
            values.append(agent.value(state)[:, 0])
        seen.append(state)
        actions.append(action)
        chances.append(policy.log_prob(action).sum(-1))
        x, reward, ended, cut, info = envs.step((action * agent.scale).numpy())
        paid.append(reward.mean())
        gain = torch.as_tensor(reward, dtype=torch.float32)
        if cut.any():
            # Cut off, not ended: what would have followed counts.
            with torch.no_grad():
                beyond = agent.value(torch.as_tensor(info["final_obs"]))[:, 0]
            gain = gain + DISCOUNT * beyond * torch.as_tensor(cut)
        rewards.append(gain)
        ends.append(torch.as_tensor(ended | cut, dtype=torch.float32))
    with torch.no_grad():
        ahead = agent.value(torch.as_tensor(x))[:, 0]
    advantage, trace = [], torch.zeros_like(ahead)
    for gain, end, value in zip(reversed(rewards), reversed(ends), reversed(values), strict=True):
        surprise = gain + DISCOUNT * ahead * (1 - end) - value
        trace = surprise + DISCOUNT * TRACE * (1 - end) * trace
        advantage.append(trace)
        ahead = value
    stacked = [torch.stack(each) for each in (seen, actions, chances)]
    mean = float(np.mean(paid))
    found = Rollout(*stacked, torch.stack(advantage[::-1]), torch.stack(values), mean)
    return found, x


def improve(agent: Agent, optimizer: torch.optim.Optimizer, found: Rollout) -> None:
    """Some passes over a roll-out, in small batches."""
    flat = [x.flatten(0, 1) for x in (found.seen, found.action, found.log_chance)]
    advantage, value = found.advantage.flatten(), found.value.flatten()
    wanted = advantage + value
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(advantage)).chunk(BATCHES):
            seen, action, before = (x[chosen] for x in flat)
            gain = advantage[chosen]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            policy = agent.policy(seen)
            ratio = (policy.log_prob(action).sum(-1) - before).exp()
            better = torch.minimum(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
            missed = (agent.value(seen)[:, 0] - wanted[chosen]).square().mean()
            loss = -better + 0.5 * missed - ENTROPY * policy.entropy().sum(-1).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


def train(updates: int) -> tuple[Agent, np.ndarray]:
    """An agent, and the mean reward of a step in each roll-out."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # nets this small gain nothing by more
    envs = RobotVectorEnv(TASK, ENVS, autoreset_mode="SameStep")
    scale = torch.as_tensor(envs.single_action_space.high)
    agent = Agent(envs.single_observation_space.shape[0], len(scale), scale)
    optimizer = torch.optim.Adam(agent.parameters(), lr=RATE)
    x, _ = envs.reset(seed=SEED)
    history = []
    for k in range(updates):
        optimizer.param_groups[0]["lr"] = RATE * (1.0 - k / updates)
        found, x = collect(envs, agent, x)
        improve(agent, optimizer, found)
        history.append(found.mean_reward)
    return agent, np.array(history)


def evaluate(agent: Agent, count: int = 64) -> tuple[np.ndarray, np.ndarray]:
    """Angles (steps, robots) of carts that start from hanging, and which still run at the end."""
    envs = RobotVectorEnv(TASK, count, autoreset_mode="SameStep", horizon=1000)
    x, _ = envs.reset(seed=10_000)
    angles, alive = [], np.ones(count, dtype=bool)
    for _ in range(500):
        x, _, ended, _, _ = envs.step(agent.act(x))
        alive &= ~ended
        angles.append(np.arctan2(x[:, 2], x[:, 1]))
    return np.array(angles), alive


def plot(history: np.ndarray, angles: np.ndarray, path: Path) -> None:
    """Rewards over training, angles over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    axes = figure.subplots(2)
    axes[0].plot(np.arange(1, len(history) + 1) * ENVS * STEPS, history)
    axes[0].set(title="Cart-pole swing-up by PPO", xlabel="steps", ylabel="reward of a step")
    axes[1].plot(0.02 * np.arange(len(angles)), angles[:, :16], alpha=0.5, lw=1)
    axes[1].set(xlabel="time [s]", ylabel="pole angle [rad]")
    for ax in axes:
        ax.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main(arguments: list[str] | None = None) -> None:
    """Train, test and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("plots"), help="folder of the plots")
    parser.add_argument("--no-plots", action="store_true")
    options = parser.parse_args(arguments)
    start, work = time.perf_counter(), time.process_time()
    agent, history = train(UPDATES)
    seconds, spent = time.perf_counter() - start, time.process_time() - work
    count = UPDATES * STEPS * ENVS
    print(f"{count} steps in {seconds:.0f} s ({spent:.0f} s of processors)")
    print(f"  reward of a step: {history[0]:.3f} at first, {history[-1]:.3f} at last")
    angles, alive = evaluate(agent)
    standing = alive & (np.abs(angles[-100:]) < 0.3).all(axis=0)
    print(f"  {standing.sum()} of {len(standing)} carts stand for the last 2 s of 10")
    if not options.no_plots:
        options.out.mkdir(parents=True, exist_ok=True)
        plot(history, angles, options.out / "ppo_swing_up.png")
        print(f"plots in {options.out}")


if __name__ == "__main__":
    main()
