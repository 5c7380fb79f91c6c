"""A trainer mode of tests: each step the next estimator of those that need no annotator."""

from verl.trainer.ppo.v1.trainer_base import register_trainer

from harness import credit
from harness.credit.registry import hyperparameters_of, needs
from harness.training.verl.credit import AgentGymsTrainer

NAMES = [name for name in credit.names() if not needs(name, {})]


@register_trainer("agentgyms_cycle")
class CycleTrainer(AgentGymsTrainer):
    """Logs the estimator's number."""

    def _compute_advantage(self, batch, metrics):
        number = self.global_steps - 1
        self._credit.use(NAMES[number], hyperparameters_of(NAMES[number], {}))
        found = super()._compute_advantage(batch, metrics)
        metrics["credit/estimator"] = float(number)
        return found
