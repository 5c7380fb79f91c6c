"""The walk through all places that the real engine finds, without its millions of other walks.

The engine makes all walks of one step, of two and so on, and for each it draws the order of the
walks that are one step longer. It stops at the first walk that has seen all places. We know how
many numbers the walks before one draw from where they end, so that we skip them.
"""

from __future__ import annotations

from agentgyms.envs.scienceworld.own.random import JavaRandom

Graph = dict[str, list[str]]
_State = tuple[str, frozenset[str]]


class CoveringWalk:
    """Finds the first shortest walk through all places; `steps` is very large if there is none."""

    _NEVER = 1 << 30

    def __init__(self, graph: Graph, start: str, random: JavaRandom) -> None:
        self._graph = graph
        self._start = start
        self._random = random
        self._to_go = self._distances()
        self.steps = self._to_go.get((start, frozenset((start,))), self._NEVER)
        if self.steps < self._NEVER:
            self._draws = self._layers()
            self._total = sum(layer[start] for layer in self._draws)

    def _distances(self) -> dict[_State, int]:
        """Return the steps that each state needs to have seen all places."""
        first = (self._start, frozenset((self._start,)))
        before: dict[_State, list[_State]] = {first: []}
        reached = [first]
        for state in reached:
            for place in self._graph[state[0]]:
                after = (place, state[1] | {place})
                if after not in before:
                    before[after] = []
                    reached.append(after)
                before[after].append(state)
        front = [state for state in reached if len(state[1]) == len(self._graph)]
        distances = dict.fromkeys(front, 0)
        for state in front:
            for earlier in before[state]:
                if earlier not in distances:
                    distances[earlier] = distances[state] + 1
                    front.append(earlier)
        return distances

    def _layers(self) -> list[dict[str, int]]:
        """Return how much the walks draw that are 0, 1, ... steps longer than one to a place."""
        layer = {place: max(len(ends) - 1, 0) for place, ends in self._graph.items()}
        layers = [layer]
        for _ in range(self.steps - 1):
            layer = {place: sum(layer[end] for end in ends) for place, ends in self._graph.items()}
            layers.append(layer)
        return layers

    def can_skip(self) -> bool:
        """Tell whether each draw takes one step of the generator, as almost always."""
        return self._random.is_regular(self._total, max(map(len, self._graph.values())))

    def places(self) -> list[str]:
        """Return the places of the walk; the generator has then drawn for all walks."""
        begin = self._random.state
        out, seen = [self._start], frozenset((self._start,))
        # How much is drawn, in this layer and in those after, for walks before this one.
        earlier = [0] * self.steps
        layer_begin = 0
        for step in range(self.steps):
            self._random.state = begin
            self._random.skip(layer_begin + earlier[0])
            layer_begin += self._draws[step][self._start]
            earlier = earlier[1:]
            for place in self._random.shuffle(self._graph[out[-1]]):
                to_go = self._to_go.get((place, seen | {place}), self._NEVER)
                if to_go < self.steps - step:
                    break
                earlier = [drawn + self._draws[at][place] for at, drawn in enumerate(earlier)]
            out.append(place)
            seen |= {place}
        self._random.state = begin
        self._random.skip(self._total)
        return out
