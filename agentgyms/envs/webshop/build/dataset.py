"""The official products of WebShop as a data set."""

from __future__ import annotations

from typing import Final

from agentgyms.data.datasets import DataSet
from agentgyms.envs.webshop.build.build import build

DATA_SET: Final = DataSet(
    name="webshop",
    title="the products and instructions of WebShop, all 1,181,436 or the first 1,000",
    licence="MIT",
    url="",
    by_hand=(
        "WebShop's authors keep it on Google Drive, which refuses downloads without a person: get "
        "items_shuffle.json, items_ins_v2.json and items_human_ins.json with the commands of "
        "`setup.sh -d all` in github.com/princeton-nlp/WebShop (or items_shuffle_1000.json and "
        "items_ins_v2_1000.json with `-d small`)"
    ),
    build=build,
)
"""Any number of products is accepted: the authors publish two sizes."""
