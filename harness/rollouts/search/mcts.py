"""Monte Carlo tree search over an environment: PUCT with a policy's prior, and values of states.

Before each turn, simulations go down the tree of tried actions, try one action more, and estimate
the value of the state that it leads to. They use snapshots of the episode's environment. Then the
action that was tried most often is played, and the tree below it is kept. Equal states at equal
turns, with equal prompts if the policy reads prompts, are one node.

References: Kocsis and Szepesvári 2006 (UCT); Silver et al. 2017 (PUCT); Zhou et al. 2024,
arXiv:2310.04406 (LATS: language models as policy, environments' rewards as value).
Departs from them: the policy's prior is the share of a few sampled answers, and rewards are the
score at the end, discounted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from agentgyms.core.errors import EnvUnavailable
from harness.rollouts.episode import Episode, Point, run_episode, take_turn
from harness.rollouts.search.budget import Budget, BudgetSpent
from harness.rollouts.search.policies import Proposals, StateValue, score_of
from harness.rollouts.search.preferences import Preference, plain
from harness.rollouts.search.tree import Edge, Node, back_up
from harness.rollouts.self_play import is_partners
from harness.rollouts.views import Actor, Decision, EpisodeView
from harness.types.errors import ConfigError, ContextOverflow
from harness.types.rollout import Rollout, Usage
from harness.types.task_draws import seed_of


@dataclass(frozen=True, slots=True)
class Plan:
    """The numbers of a search."""

    simulations: int  # visits of the state before each turn; those of earlier turns count
    exploration: float  # PUCT's c
    discount: float  # factor on the score for each turn until it comes
    backup: str = "mean"  # or "max"; see `back_up`


class TreeSearch:
    """The search of one episode; the budget pays for simulations, not for the episode's turns."""

    def __init__(
        self, proposals: Proposals, value: StateValue, budget: Budget, plan: Plan, seed: int
    ) -> None:
        self.proposals, self._value = proposals, value
        self._budget, self._plan, self._seed = budget, plan, seed
        self._known: dict[tuple[int, str, str], Node] = {}
        self._at: Node | None = None  # the state of the environment; None if it is in no node
        self.nodes, self.simulations = list[Node](), 0
        self.taken = Usage()  # of answers that turns of the episode took over

    async def run(
        self, episode: Episode, actor: Actor, *, seed: int, allow_initial_overflow: bool = False
    ) -> Rollout:
        """Play as `run_episode` does, with a search before each turn while the budget lasts."""
        player = _Player(self, actor, episode)
        return await run_episode(
            episode, player, seed=seed, allow_initial_overflow=allow_initial_overflow
        )

    async def decide(self, episode: Episode) -> Decision | None:
        """Return the best action of the episode's state, and leave the environment in that state.

        None if the budget was spent before an action was tried. Raises `EnvUnavailable` if the
        environment or a judge fails, `ModelUnavailable` if the model gives no answer, and
        `ConfigError` if chance takes part in the environment's turns.
        """
        if episode.env.stochastic:
            raise ConfigError(
                f"agent.kind 'mcts' would see what chance decides in {episode.pool.env_id}: choose "
                "another search, or arguments without chance"
            )
        root = self._at = await self._found(episode.moved_to(episode.env), over=False)
        with suppress(BudgetSpent):
            while root.point is not None and root.visits < self._plan.simulations:
                await self._simulate(root)
                if len(root.edges) == 1:  # there is no choice
                    break
        if root.point is None:  # its prompt is too long
            return None
        await self._go_to(root)
        best = root.best()
        return None if best is None else best.decision

    async def _simulate(self, root: Node) -> None:
        """Go down to a state without a value, estimate it, and add its return to the way there."""
        path, node = list[tuple[Node, Edge]](), root
        while node.point is not None and node.value is not None:
            if not node.edges and not await self._expand(node, node.point):
                break
            edge = node.select(self._plan.exploration)
            path.append((node, edge))
            if edge.child is None:
                edge.child = await self._take(node, edge.decision)
            node = edge.child
        if node.value is None and node.point is not None:
            node.value = await self._estimate(node, node.point)
        back_up(path, node.value or 0.0, self._plan.discount, self._plan.backup)
        self.simulations += 1

    async def _expand(self, node: Node, point: Point) -> bool:
        """Ask the policy for its actions; return False if the prompt is too long."""
        seed = seed_of(self._seed, node.number)
        try:
            proposed = await self.proposals.propose(point.episode, seed)
        except ContextOverflow:
            node.point, node.value = None, 0.0
            return False
        node.edges = [Edge(decision, prior) for decision, prior in proposed]
        return True

    async def _take(self, node: Node, decision: Decision) -> Node:
        """Take an action in a state and return the state that it leads to."""
        self._budget.take_step()
        twin = await self._copy_at(node)
        over = await take_turn(twin, _Given(decision), 0)
        if twin.rollout.error:
            raise EnvUnavailable(f"a simulation of {twin.draw.task_id}: {twin.rollout.error}")
        self._at = child = await self._found(twin, over=over)
        return child

    async def _estimate(self, node: Node, point: Point) -> float:
        """Return the value of a state; its environment is somewhere else afterwards."""
        twin = await self._copy_at(node)
        value = await self._value(twin, seed_of(self._seed, node.number))
        if twin.rollout.error:
            raise EnvUnavailable(f"a simulation of {twin.draw.task_id}: {twin.rollout.error}")
        self._at = node if len(twin.rollout.turns) == len(point.episode.rollout.turns) else None
        return value

    async def _copy_at(self, node: Node) -> Episode:
        """Return a copy of the episode in a state, in which the environment is from now on."""
        await self._go_to(node)
        assert node.point is not None
        self._at = None  # the caller moves on
        return node.point.episode.moved_to(node.point.episode.env)

    async def _go_to(self, node: Node) -> None:
        if self._at is node:
            return
        assert node.point is not None
        snapshot, episode, _ = node.point
        self._at = None
        await episode.call(lambda: episode.env.restore(snapshot))
        self._at = node

    async def _found(self, episode: Episode, *, over: bool) -> Node:
        """Return the node of the state that an episode is in; the episode is kept in a new one."""
        if is_partners(episode.info):
            raise ConfigError("agent.kind 'mcts' plays one seat: leave partner=self out")
        if over:
            return self._added(None, score_of(episode))
        try:
            known = self.proposals.key(episode)
        except ContextOverflow:
            return self._added(None, 0.0)
        key = int(episode.info["turn"]), str(episode.info["state_key"]), known
        if key not in self._known:
            snapshot = await episode.call(episode.env.snapshot)
            self._known[key] = self._added(Point(snapshot, episode, 0), None)
        return self._known[key]

    def _added(self, point: Point | None, value: float | None) -> Node:
        node = Node(len(self.nodes), point, value)
        self.nodes.append(node)
        return node

    def preferences(self, seed: int, min_visits: int) -> Iterator[Preference]:
        """Yield a pair for each state with two different actions tried `min_visits` times."""
        for node in self.nodes:
            pair = node.pair(min_visits)
            if node.point is None or pair is None:
                continue
            better, worse = pair
            view = node.point.episode.view()
            yield Preference(
                node.point.episode.draw.task_id,
                seed,
                plain(self.proposals.agent.messages(view)),
                better.decision.completion.text,
                worse.decision.completion.text,
                better.value,
                worse.value,
                min(better.visits, worse.visits),
            )


class _Given:
    def __init__(self, decision: Decision) -> None:
        self._decision = decision

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        return self._decision


class _Player:
    """An actor of one episode that searches before it decides."""

    def __init__(self, search: TreeSearch, actor: Actor, episode: Episode) -> None:
        self._search, self._actor, self._episode = search, actor, episode

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        found = await self._search.decide(self._episode)
        if found is None:
            return await self._actor.act(view, seed)
        self._search.proposals.agent.messages(view)  # the view keeps the prompt
        self._search.taken += found.completion.usage
        return found
