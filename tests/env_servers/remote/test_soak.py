"""The soak itself, in short: servers that stay small pass it, and one that leaks does not."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fault_proxy import FaultProxy

from env_servers import Server, create_app

SOAKING = Path(__file__).parents[3] / "benchmarks" / "soaking"

pytestmark = pytest.mark.slow


def soak(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SOAKING / "one_server.py"), *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=280,
    )


@pytest.mark.parametrize(
    ("env_id", "episodes", "abandoned"),
    [("agentgyms/Corridor-v0", 1000, 100), ("agentgyms/ALFWorld-v0", 600, 0)],
)
def test_a_server_stays_small(env_id, episodes, abandoned, tmp_path):
    """A tenth of so few episodes does not fill all caches: hence the wider bound."""
    figure = tmp_path / "memory.png"
    done = soak(
        env_id, f"--episodes={episodes}", f"--abandoned={abandoned}", "--growth=0.12", "--ttl=4",
        f"--figure={figure}",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert figure.stat().st_size > 5_000


def test_a_server_that_leaks_is_found_out():
    done = soak("leaky_env:test/Leaky-v0", "--episodes=600", "--abandoned=0", "--growth=0.12")
    assert done.returncode == 1
    missed = [line for line in done.stdout.splitlines() if line.endswith("MISSED")]
    assert [line.split("  ")[0] for line in missed] == ["growth of the server"], done.stdout


def test_clients_play_on_under_faults_and_nothing_is_left(tmp_path):
    """So short a run proves the report, not the bound of memory."""
    done = subprocess.run(
        [sys.executable, str(SOAKING / "under_faults.py"), "--minutes=0.6", "--every=2", "--ttl=4",
         "--growth=9", "--environments=Corridor,AppWorld", "--clients=2", f"--folder={tmp_path}"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    report = (tmp_path / "report.md").read_text()
    assert done.returncode == 0, report + done.stderr
    assert report in done.stdout
    assert "0 errors." in report
    assert "no file, process or session" in report
    assert (tmp_path / "memory.png").stat().st_size > 5_000
    assert (tmp_path / "samples.jsonl").read_text().count("\n") > 3


def test_agents_play_through_a_gateway_that_ends_and_goes_on(tmp_path):
    """It ends once all has happened, however long that takes; no rollout expires before."""
    done = subprocess.run(
        [sys.executable, str(SOAKING / "under_faults.py"), "--gateway", "--minutes=0.3",
         "--every=0.3", "--ttl=3600", "--restart=0.05", "--growth=9", f"--folder={tmp_path}"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=1180,
    )  # fmt: skip
    log = (tmp_path / "gateway.log").read_text()
    assert done.returncode == 0, done.stdout + done.stderr + log
    assert "0 errors." in done.stdout
    assert "no file, process or session" in done.stdout
    assert "| gateway killed |" in done.stdout
    assert "| gateway drained |" in done.stdout
    assert (tmp_path / "memory.png").stat().st_size > 5_000


class Cutting(FaultProxy):
    """Ends the connection after `kept` bytes of a reply; None passes it on."""

    kept: int | None = None
    head = 0

    async def cut(self, request, writer):
        reply = await self._forward(request)
        self.head = reply.index(b"\r\n\r\n") + 4
        writer.write(reply[: self.kept])
        writer.close()  # in order: its end comes after the bytes
        await writer.wait_closed()
        return False


def test_an_agent_takes_no_reply_that_is_cut_off(monkeypatch):
    """Not amid its head either, which Python's client takes for a whole one without a body."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(SOAKING.parent)])
    from soaking.gateway_agents import Agent, Ledger, Lost

    app = create_app("agentgyms/Corridor-v0", token="", split="train")
    with Server(app) as server, Cutting(server.url, lambda _: "cut") as proxy:
        agent = Agent(SimpleNamespace(proxy=proxy), Ledger(), 0, threading.Event())
        assert agent._once("GET", "/v1/info")
        for kept in range(proxy.head + 2):
            proxy.kept = kept
            with pytest.raises(Lost) as lost:
                agent._once("GET", "/v1/info")
            assert lost.value.status == 0
        agent._http.close()
        agent._env.close()


GROUPS = [[f"g{group}-{4 * group + member}" for member in range(4)] for group in range(4)]


def learned(*names: str, reward: float = 1.0) -> list[dict[str, Any]]:
    turn = {"observation": "o", "state_key": "s", "action": "a", "reward": reward}
    return [{"task_id": name, "turns": [{**turn, "text": "a"}]} for name in names]


STEPS = [learned(*GROUPS[0], *GROUPS[1]), learned(*GROUPS[2], *GROUPS[3])]


@pytest.mark.parametrize(
    ("kept", "steps", "whole", "found"),
    [
        (STEPS, [1, 2], 0, []),
        (STEPS, [1, 3], 0, ["metrics.jsonl has 2 steps"]),
        (STEPS, [1, 1, 2], 0, ["metrics.jsonl has 3 steps", "2 steps have rollouts"]),
        ([STEPS[0], STEPS[0]], [1, 2], 2, ["rollouts were learned twice"]),
        ([STEPS[0]], [1], 2, []),
        ([STEPS[0]], [1], 0, ["2 whole groups were not learned"]),
        ([STEPS[0], learned(*GROUPS[2], *GROUPS[3], reward=2.0)], [1, 2], 0, ["other turns"]),
        ([STEPS[0], learned(*GROUPS[2], *GROUPS[3], "g9-1")], [1, 2], 0, ["groups", "other turns"]),
    ],
)
def test_a_gateways_soak_compares_what_was_learned(kept, steps, whole, found, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(SOAKING.parent)])
    from soaking import gateway

    soaked = gateway.GatewaySoak(SimpleNamespace())
    soaked.gateway = SimpleNamespace(learned=lambda: kept, steps=lambda: steps)
    for group in GROUPS:
        for one in learned(*group):
            turns = [{k: v for k, v in turn.items() if k != "text"} for turn in one["turns"]]
            soaked.ledger.reported[one["task_id"]] = turns
            soaked.ledger.rewarded[one["task_id"]] = (7, group[0].partition("-")[0])
    soaked.check(last=7, whole=whole)
    errors = list(soaked.result.errors)
    assert len(errors) == len(found), errors
    assert all(any(words in error for error in errors) for words in found), errors


def figures_of(*memory: int, errors: tuple[str, ...] = (), left: tuple[str, ...] = ()) -> Any:
    sys.path += [str(SOAKING.parent)]
    from soaking import figures

    samples = [(float(second), {"A": size << 20}) for second, size in enumerate(memory)]
    result = figures.Result(60.0, samples, Counter(), Counter(errors), list(left))
    service = SimpleNamespace(name="A", restarts=False, tally=_tally())
    return figures.markdown(result, [service], 0.05)


def _tally() -> Any:
    return SimpleNamespace(episodes=3, turns=40, cut=0, errors=Counter())


@pytest.mark.parametrize(
    ("memory", "found", "good"),
    [
        ((50, *[100] * 40), {}, True),
        ((50, *[100] * 30, *[104] * 10), {}, True),
        ((50, *[100] * 30, *[106] * 10), {}, False),
        ((100,) * 40, {"errors": ("a turn differs",)}, False),
        ((100,) * 40, {"left": ("process 7",)}, False),
    ],
)
def test_a_report_says_what_is_missed(memory, found, good):
    text, kept = figures_of(*memory, **found)
    assert kept is good
    assert ("MISSED" in text) is not good
    assert all(said in text for said in (*found.get("errors", ()), *found.get("left", ())))
    assert "| A | 3 | 40 |" in text
