"""Tiny semantic scorers, made on the spot and saved like big ones."""

import torch
from transformers import BertConfig, BertForSequenceClassification

from harness.model import tiny

TEXTS = [
    "go to drawer 1 || the drawer 1 is closed",
    "take mug 2 from shelf 1 || you take the mug 2",
    "go to cabinet 4 || you see a plate",
    "look || you are in the middle of a room and see a shelf 1, a drawer 1 and a cabinet 4",
]


def saved(folder, make, **sizes):
    tokenizer = tiny.make_tokenizer(TEXTS * 20, 400)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        make(tokenizer, **sizes).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def bert(tokenizer, kind=BertForSequenceClassification, **more):
    return kind(
        BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            pad_token_id=tokenizer.pad_token_id,
            initializer_range=0.3,
            **more,
        )
    )
