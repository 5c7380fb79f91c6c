"""An actor that decides with a function."""

from harness.rollouts.views import Decision
from harness.types.rollout import Completion


class FunctionActor:
    """Takes the action `choose(view, seed)`; the action is also the text of the completion."""

    def __init__(self, choose):
        self._choose = choose

    async def act(self, view, seed):
        action = self._choose(view, seed)
        return Decision(action, Completion(action))
