"""`RemoteVectorEnv`: many environments on servers, stepped together with one call per server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from agentgyms.core.errors import BadOption
from agentgyms.core.outcome import cut_action
from agentgyms.core.snapshots import Episode, Last
from agentgyms.remote.batches import BatchItem, call_in_batches, take_all
from agentgyms.remote.connection import Connection
from agentgyms.remote.env import RemoteEnv
from agentgyms.remote.lease import Lease, Step, dismiss_all
from agentgyms.remote.patience import Patience
from agentgyms.remote.recovery import Grace, can_go_on, rebuild_all
from agentgyms.remote.transport import Transport
from agentgyms.remote.vector_infos import batched_infos

Bools = NDArray[np.bool_]


class RemoteVectorEnv(VectorEnv[Any, Any, Any]):
    """`num_envs` environments `env_id`; `gymnasium.make_vec(..., url=...)`.

    Observations, rewards, ends and infos equal those of a `SyncVectorEnv` over local environments,
    seeds included, but a reset or step of all takes one call per server. In the step after an end
    (mode NEXT_STEP) the resets are one call more. Sessions are spread over the servers.

    Args:
        env_id: The id of the environment on the servers.
        num_envs: How many environments.
        url: Address of a server, or several of replicas.
        token: Bearer token; None takes the variable `AGENTGYMS_TOKEN`.
        autoreset_mode: When a finished environment is reset; with DISABLED, never: call
            `reset(options={"reset_mask": ...})`.
        transport: Sends the requests; None uses HTTP.
        patience: How long to wait for a server, also as numbers by their names.
        **kwargs: Arguments of every environment.

    Raises:
        BadOption: `num_envs` is not a positive integer.
        Exception: One of the errors of `RemoteEnv`.
    """

    def __init__(
        self,
        env_id: str,
        num_envs: int,
        *,
        url: str | Sequence[str],
        token: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        transport: Transport | None = None,
        patience: Patience | Mapping[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        self.closed = True  # until there are some: gymnasium 1.1 closes what is collected
        if not isinstance(num_envs, int) or num_envs < 1:
            raise BadOption(f"num_envs must be a positive integer, got {num_envs!r}")
        self.num_envs = num_envs
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self._connection = Connection(env_id, url, token, transport, patience)
        self._pool = ThreadPoolExecutor(len(self._connection.endpoints))
        self.envs = [
            RemoteEnv.adopt(self._connection, lease, kwargs, shared=True)
            for lease in self._connection.open_many(kwargs, num_envs)
        ]
        self.closed = False
        first = self.envs[0]
        self.metadata = {**first.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = first.render_mode
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        self.observation_space = batch_space(first.observation_space, num_envs)
        self.action_space = batch_space(first.action_space, num_envs)
        self._observations: list[Any] = [None] * num_envs
        self._over: Bools = np.zeros(num_envs, dtype=np.bool_)

    @property  # type: ignore[misc]  # as in SyncVectorEnv: one for each environment, without a setter
    def np_random(self) -> Any:
        """The generators of the environments."""
        return self.get_attr("np_random")

    @property
    def np_random_seed(self) -> Any:
        """The seeds of the environments' generators."""
        return self.get_attr("np_random_seed")

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all environments, or those of `options["reset_mask"]`.

        Args:
            seed: One for each environment, or the first one's, to which indices are added.
            options: For all environments; `reset_mask` is a boolean array of shape [num_envs].

        Raises:
            ValueError: The number of seeds or the mask's shape is wrong, or the mask is empty.
            TypeError: The mask is not a boolean array.
        """
        seeds = self._seeds(seed)
        shared = dict(options) if options is not None else None
        mask = (shared or {}).pop("reset_mask", None)
        chosen = range(self.num_envs) if mask is None else _indices(mask, self.num_envs)
        infos = self._reset(chosen, seeds, shared)
        self._over[list(chosen)] = False
        return self._batched_observations(), batched_infos(infos, self.num_envs, self._add_info)

    def step(self, actions: Any) -> tuple[Any, NDArray[np.float64], Bools, Bools, dict[str, Any]]:
        """Take one turn in every environment, or reset it where the mode says so."""
        taken = list(iterate(self.action_space, actions))
        if len(taken) != self.num_envs:
            raise ValueError(f"{self.num_envs} environments need as many actions, got {len(taken)}")
        anew = np.flatnonzero(self._over) if self.autoreset_mode == AutoresetMode.NEXT_STEP else ()
        new = {int(i) for i in anew}
        acting = [i for i in range(self.num_envs) if i not in new]
        steps = self._step(acting, taken)
        infos = {i: step.info for i, step in steps.items()}
        finals: dict[int, dict[str, Any]] = {}
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            new = {i for i, step in steps.items() if step.terminated or step.truncated}
            finals = {i: {"final_obs": steps[i].observation, "final_info": infos[i]} for i in new}
        infos |= self._reset(sorted(new), [None] * self.num_envs, None)
        return self._collected(steps, infos, finals)

    def _collected(
        self,
        steps: Mapping[int, Step],
        infos: Mapping[int, dict[str, Any]],
        finals: Mapping[int, dict[str, Any]],
    ) -> tuple[Any, NDArray[np.float64], Bools, Bools, dict[str, Any]]:
        reward = np.zeros(self.num_envs)
        terminated, truncated = np.zeros((2, self.num_envs), dtype=np.bool_)
        for i, step in steps.items():
            _, reward[i], terminated[i], truncated[i], _ = step
        batched = batched_infos(infos, self.num_envs, self._add_info)
        ended: dict[str, Any] = {}
        for i, final in finals.items():
            ended = self._add_info(ended, final, i)
        batched = ended | batched if 0 in finals else batched | ended  # keys in Gymnasium's order
        self._over = terminated | truncated
        return self._batched_observations(), reward, terminated, truncated, batched

    def _batched_observations(self) -> Any:
        space = self.single_observation_space
        empty: Any = create_empty_array(space, n=self.num_envs)
        return concatenate(space, self._observations, empty)

    def _seeds(self, seed: int | Sequence[int | None] | None) -> Sequence[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int):
            return [seed + i for i in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError(f"{self.num_envs} environments need as many seeds, got {len(seed)}")
        return seed

    # --- calls of many sessions in one -----------------------------------------------------------

    def _reset(
        self, chosen: Iterable[int], seeds: Sequence[int | None], options: dict[str, Any] | None
    ) -> dict[int, dict[str, Any]]:
        plans = {i: self.envs[i].prepare_reset(seeds[i], options) for i in chosen}
        items = {
            i: BatchItem(partial(Lease.reset_fields, episode=plan), Lease.take_state)
            for i, plan in plans.items()
        }
        infos = {}

        def take(i: int, last: Last) -> None:
            self.envs[i].record(plans[i], last)
            self._observations[i], infos[i] = last.observation, last.info

        held = {i: self.envs[i].lease for i in plans}
        results = self._call("reset", items, dict.fromkeys(plans))
        failed = [i for i, result in results.items() if isinstance(result, Exception)]
        # Their running episodes go on, but they are not in sessions opened meanwhile.
        self._lose(i for i in failed if self.envs[i].lease is not held[i])
        take_all(results, take)
        return infos

    def _step(self, chosen: Iterable[int], actions: Sequence[Any]) -> dict[int, Step]:
        running = {i: self.envs[i].prepare_step(actions[i]) for i in chosen}
        items = {}
        for i, episode in running.items():
            turn = len(episode.actions) + 1
            fields = partial(Lease.step_fields, action=cut_action(actions[i]), turn=turn)
            items[i] = BatchItem(fields, partial(Lease.take_step, turn=turn))
        steps = {}

        def take(i: int, step: Step) -> None:
            episode = running[i]
            episode.actions.append(cut_action(actions[i]))
            self.envs[i].record(episode, step.state)
            self._observations[i], steps[i] = step.observation, step

        take_all(self._call("step", items, running), take)
        return steps

    def _call(
        self, operation: str, items: Mapping[int, BatchItem], episodes: Mapping[int, Episode | None]
    ) -> dict[int, Any]:
        """Call the members' sessions; a lost one is replaced by a new one, with its episode."""
        results: dict[int, Any] = {}
        left, grace = list(items), Grace(self._connection.patience)
        try:
            while left:
                missing = [i for i in left if self.envs[i].lease is None]
                results |= self._rebuild({i: episodes[i] for i in missing})
                leases = {i: lease for i in left if (lease := self.envs[i].lease) is not None}
                called = {i: items[i] for i in leases}
                results |= call_in_batches(self._pool, operation, leases, called)
                left = [i for i in left if can_go_on(results[i])]
                self._lose(left)
                if left and grace.is_over():
                    break
        except BaseException:  # interrupted: the servers may have acted, or may act later
            self._lose(items)
            raise
        return {i: grace.explain(results[i]) if i in left else results[i] for i in items}

    def _rebuild(self, episodes: Mapping[int, Episode | None]) -> dict[int, Exception]:
        """Open sessions for members without one; return the errors of those that got none."""
        if not episodes:
            return {}
        failures: dict[int, Exception] = {}
        kwargs = self.envs[0].arguments
        for i, lease in rebuild_all(self._pool, self._connection, kwargs, episodes).items():
            try:
                if isinstance(lease, Exception):
                    raise lease
                self.envs[i].hold(lease)
            except Exception as e:
                failures[i] = e
        return failures

    def _lose(self, members: Iterable[int]) -> None:
        """Treat the sessions of members as lost, and close them on their servers."""
        envs = [self.envs[i] for i in members]
        dismiss_all([env.lease for env in envs if env.lease is not None])
        for env in envs:
            env.forget()

    # --- the members -----------------------------------------------------------------------------

    def render(self) -> tuple[Any, ...]:
        """Return the result of `render` of each environment."""
        return tuple(env.render() for env in self.envs)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return the attribute `name` of each environment, called if it is a method."""
        found = [env.get_wrapper_attr(name) for env in self.envs]
        return tuple(one(*args, **kwargs) if callable(one) else one for one in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return the attribute `name` of each environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set the attribute `name` of each environment; `values` is one value, or one for each."""
        each = values if isinstance(values, list | tuple) else [values] * self.num_envs
        if len(each) != self.num_envs:
            raise ValueError(f"{self.num_envs} environments need as many values, got {len(each)}")
        for env, value in zip(self.envs, each, strict=True):
            env.set_wrapper_attr(name, value)

    def close_extras(self, **_: Any) -> None:
        """Close the sessions, with one call per server; those on a lost server expire there."""
        self._lose(range(self.num_envs))
        for env in self.envs:
            env.close()
        self._pool.shutdown()
        self._connection.close()


def _indices(mask: Any, num_envs: int) -> list[int]:
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise TypeError(f"options['reset_mask'] must be a boolean array, got {mask!r:.80}")
    if mask.shape != (num_envs,):
        raise ValueError(f"options['reset_mask'] must have shape ({num_envs},), got {mask.shape}")
    if not mask.any():
        raise ValueError("options['reset_mask'] must be True for one environment at least")
    return [int(i) for i in np.flatnonzero(mask)]
