"""The runs of `--seeds` and `--sweep`: their names, values and seeds."""

import pytest

from harness import config as configs
from harness.types.errors import ConfigError


def named(*arguments, **more):
    return {one.run.name: one for one in configs.vary("corridor-tiny", ["run.name=n"], **more)}


def test_seeds_follow_the_recipes_own():
    runs = configs.vary("corridor-tiny", ["run.name=n", "run.seed=4"], seeds=3)
    assert [(one.run.name, one.run.seed) for one in runs] == [
        ("n-seed4", 4), ("n-seed5", 5), ("n-seed6", 6),
    ]  # fmt: skip
    assert runs[0].swept == ()
    plain = [configs.without_seed(configs.to_dict(one)) for one in runs]
    assert plain[0] == plain[1] == plain[2]
    assert plain[0] == configs.without_seed(configs.to_dict(configs.load("corridor-tiny")))


def test_a_sweep_is_a_product_and_every_seed_of_it():
    sweeps = ["method.credit.gamma=0.9,0.95", "rollout.group_size=2,4"]
    runs = named(sweeps=sweeps, seeds=2)
    assert list(runs) == [
        f"n-gamma={gamma}-group_size={size}-seed{seed}"
        for gamma in ("0.9", "0.95") for size in (2, 4) for seed in (0, 1)
    ]  # fmt: skip
    one = runs["n-gamma=0.95-group_size=4-seed1"]
    assert (one.method.credit["gamma"], one.rollout.group_size, one.run.seed) == (0.95, 4, 1)
    assert one.swept == ("method.credit.gamma", "rollout.group_size")


@pytest.mark.parametrize(
    ("sweep", "names", "values"),
    [
        ("method.name=grpo, rloo", ["n-name=grpo", "n-name=rloo"], ["grpo", "rloo"]),
        ("policy.model=org/a b,c", ["n-model=org_a_b", "n-model=c"], ["org/a b", "c"]),
        (
            'run.plugins=["os.path","json"],[]',
            ["n-plugins=_os.path_json_", "n-plugins=_"],
            [("os.path", "json"), ()],
        ),
    ],
)
def test_values_are_those_of_set(sweep, names, values):
    runs = named(sweeps=[sweep])
    assert list(runs) == [f"{name}-seed0" for name in names]
    section, key = sweep.partition("=")[0].split(".")
    assert [getattr(getattr(one, section), key) for one in runs.values()] == values


def test_two_keys_that_end_alike_stand_in_full():
    sweeps = ["eval.max_turns=3", "env.max_turns=4"]
    assert list(named(sweeps=sweeps)) == ["n-eval.max_turns=3-env.max_turns=4-seed0"]


@pytest.mark.parametrize(
    ("sweeps", "message"),
    [
        (["run.steps"], "--sweep has the form"),
        (["run.steps=1,,2"], "--sweep has the form"),
        (["run.steps=1", "run.steps=2"], "a setting is swept twice"),
        (["run.steps=1,1"], "--sweep has a value twice: n-steps=1-seed0"),
        (["method.credit.gamma=0.9,0.90"], "--sweep has a value twice: n-gamma=0.90-seed0"),
        (["run.seed=1,2"], "for other seeds take --seeds"),
        (["run.steps=1,many"], "run.steps"),
        (["run.sead=1"], "unknown configuration key run.sead"),
    ],
)
def test_a_wrong_sweep_is_refused_in_one_line(sweeps, message):
    with pytest.raises(ConfigError) as caught:
        named(sweeps=sweeps)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_methods_are_equal_but_for_their_names_and_share_seeds():
    runs = configs.vary("corridor-tiny", ["run.name=n"], methods=["grpo", "gigpo"], seeds=2)
    assert [(c.run.name, c.method.name, c.run.seed) for c in runs] == [
        ("n-grpo-seed0", "grpo", 0),
        ("n-gigpo-seed0", "gigpo", 0),
        ("n-grpo-seed1", "grpo", 1),
        ("n-gigpo-seed1", "gigpo", 1),
    ]
    first, second = (configs.to_dict(configs.replace(c, run=runs[0].run)) for c in runs[:2])
    assert first["method"].pop("name") != second["method"].pop("name")
    assert first == second


def test_methods_and_a_sweep_are_every_combination():
    names = [*named(methods=["grpo", "gigpo"], sweeps=["env.max_turns=3,4"])]
    assert names == [
        f"n-{method}-max_turns={turns}-seed0" for method in ("grpo", "gigpo") for turns in (3, 4)
    ]


@pytest.mark.parametrize(
    "more",
    [
        {"methods": ["grpo", "grpo"]},
        {"methods": ["grpo"], "sweeps": ["method.name=gigpo,rloo"]},
    ],
)
def test_a_method_twice_is_refused(more):
    with pytest.raises(ConfigError, match="--methods"):
        configs.vary("corridor-tiny", [], **more)
