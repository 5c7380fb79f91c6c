import copy
import json
import operator
import pickle
import random

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv

from agentgyms.core.spaces import UnicodeText


def test_any_text_up_to_the_length_is_contained():
    space = UnicodeText(5)
    for text in ("", " \n\t", "é中🙂", "\x00", "\ud800", "12345"):
        assert text in space
    for other in ("123456", b"x", None, 3, ["a"]):
        assert other not in space


def test_samples_are_seeded_and_contained():
    space, twin = UnicodeText(7, seed=3), UnicodeText(7, seed=3)
    samples = [space.sample() for _ in range(50)]
    assert samples == [twin.sample() for _ in range(50)]
    assert all(sample in space for sample in samples)
    assert len(set(samples)) > 40


def test_equality_pickle_copy_and_json():
    space = UnicodeText(9)
    assert space == UnicodeText(9) != UnicodeText(8)
    assert pickle.loads(pickle.dumps(space)) == copy.deepcopy(space) == space
    texts = ["a\nb", "中"]
    assert space.from_jsonable(space.to_jsonable(texts)) == texts


def test_a_length_must_be_a_positive_integer():
    for bad in (0, -1, 2.5, "9"):
        with pytest.raises(ValueError, match="positive integer"):
            UnicodeText(bad)


class Echo(gym.Env):
    """Observes its last action, beside a picture whose first pixel counts the steps."""

    metadata = {"render_modes": []}

    def __init__(self):
        self.observation_space = gym.spaces.Dict(
            text=UnicodeText(64), image=gym.spaces.Box(0, 255, (2, 2, 3), np.uint8)
        )
        self.action_space = UnicodeText(64)

    def _observe(self, text):
        image = np.zeros((2, 2, 3), np.uint8)
        image[0, 0, 0] = self.count
        return {"text": text, "image": image}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self._observe(f"start {seed} é"), {}

    def step(self, action):
        self.count += 1
        return self._observe(action), 0.0, False, False, {}


@pytest.mark.parametrize("copied", [True, False])
def test_the_default_async_vector_env_shows_the_text_of_every_step(copied):
    env = AsyncVectorEnv([Echo] * 3, copy=copied)
    observations, _ = env.reset(seed=[1, 2, 3])
    assert tuple(observations["text"]) == ("start 1 é", "start 2 é", "start 3 é")
    kept = observations
    rng = random.Random(0)
    for count in range(1, 5):
        actions = tuple(
            "".join(rng.choices("ab 中🙂\n\ud800", k=rng.randint(0, 64))) for _ in range(3)
        )
        observations, *_ = env.step(actions)
        assert tuple(observations["text"]) == actions
        assert observations["image"][:, 0, 0, 0].tolist() == [count] * 3
    if copied:
        assert tuple(kept["text"]) == ("start 1 é", "start 2 é", "start 3 é")
    env.close()


OPERATIONS = [getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "add")]


def test_uncopied_texts_behave_like_the_tuple_of_the_moment():
    env = AsyncVectorEnv([Echo] * 3, copy=False)
    observations, _ = env.reset(seed=[1, 2, 3])
    live = observations["text"]
    assert live in env.observation_space["text"]
    copies = []
    for now in (("a", "b", "a"), ("c", "", "é")):
        env.step(now)
        for other in (now, live, ("", "", ""), ("z",)):
            plain = now if other is live else other
            for operate in OPERATIONS:
                assert operate(live, other) == operate(now, plain), operate
                assert operate(other, live) == operate(plain, now), operate
        assert (live * 2, 2 * live) == (now * 2, 2 * now)
        assert (now[0] in live, "z" in live) == (True, False)
        assert (live.count(now[0]), live.index(now[1])) == (now.count(now[0]), 1)
        assert (live[0], live[-2:], len(live)) == (now[0], now[-2:], 3)
        assert (list(live), tuple(live), [*reversed(live)]) == (list(now), now, [*reversed(now)])
        assert (repr(live), str(live), f"{live}") == (repr(now), str(now), f"{now}")
        assert json.dumps(live) == json.dumps(now)
        first, *rest = live
        assert (first, *rest) == now
        made = (copy.copy(live), copy.deepcopy(live), pickle.loads(pickle.dumps(live)))
        assert made == (now, now, now)
        assert all(type(one) is tuple for one in made)
        copies.append((made, now))
        with pytest.raises(TypeError, match="unhashable"):
            hash(live)
    assert all(made == (now, now, now) for made, now in copies)
    env.close()


def test_a_text_that_is_too_long_is_refused_by_the_shared_memory():
    from gymnasium.vector.utils.shared_memory import create_shared_memory, write_to_shared_memory

    space = UnicodeText(4)
    memory = create_shared_memory(space, n=1)
    with pytest.raises(ValueError, match="5 characters"):
        write_to_shared_memory(space, 0, "12345", memory)
