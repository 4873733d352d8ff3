# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Attention at length
#
# **What does a context of 100,000 tokens cost, and what can be done about it?**

# %% jupyter={"source_hidden": true}
import math

import pandas as pd
import torch
from torch import nn
from torch.nn import functional as F

import course_utils as cu

cu.seed_everything(0)


# %%
def features(x):
    return F.elu(x) + 1  # positive, so that no weight is negative


def linear_attention(q, k, v):
    """Every query looks at all pairs: q and k (…, n, r), v (…, n, d_v)."""
    q, k = features(q), features(k)
    S, z = k.mT @ v, k.sum(dim=-2)  # (…, r, d_v) and (…, r), whatever n is
    return q @ S / (q @ z[..., None])


# %%
class Recall(nn.Module):
    """Reads n pairs of a key and a value, and is asked for each key: (batch, n, 128) logits of its value."""

    def __init__(self, attend, dim=16, width=64):
        super().__init__()
        self.attend = attend
        self.keys, self.values = nn.Embedding(128, 64), nn.Embedding(128, width)
        self.query_proj, self.key_proj = (nn.Linear(64, dim, bias=False) for _ in range(2))
        self.output = nn.Linear(width, 128)

    def forward(self, keys, values):
        keys = self.keys(keys)
        return self.output(self.attend(self.query_proj(keys), self.key_proj(keys), self.values(values)))


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def pairs(n, count, draws):
    """Different keys and any values, of 128 each: (count, n) twice."""
    keys = torch.rand(count, 128, generator=draws).argsort(1)[:, :n]
    return keys, torch.randint(128, (count, n), generator=draws)


def train(model, steps=1500, rate=0.01, seed=0, sizes=(4, 8, 16, 32, 64), watch=None):
    """AdamW on texts of `sizes` pairs. The rate rises for 50 steps, and falls to zero in the last half."""
    draws = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / 50, 2 * (1 - step / steps))
    )
    for step in range(1, steps + 1):
        n = sizes[torch.randint(len(sizes), (), generator=draws)]
        keys, values = pairs(n, 32, draws)
        loss = F.cross_entropy(model(keys, values).mT, values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if watch:
            watch(step, model)
    return model
