# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # BERT and transfer
#
# **A gap in a sentence is easier to fill if you may also read what comes after it.
# How do we train a network to read both sides, and what is all that reading worth when it gets a task of its own?**
#
# Let's put two readers in front of the same gap.
# Both are small networks that have trained on the same English sentences for the same number of steps.
# One is a **BERT**, which reads both sides of the gap, and the other is a GPT, which stops where the gap begins.

# %% jupyter={"source_hidden": true}
import math

import torch
from IPython.display import Markdown
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.data.prose import TextBatch
from course_utils.data.text import MASK
from course_utils.lessons.bert_and_transfer import tasks, trigrams, tuning
from course_utils.metrics import accuracy
from course_utils.models.language import SentenceClassifier

cu.seed_everything(0)

# %% tags=["opening"] jupyter={"source_hidden": true}
cu.live.bert("she wants to ___ a novel .")

# %% [markdown]
# After *she wants to* nearly every verb fits, so the GPT can only spread its bets.
# The BERT also sees *a novel*, which leaves few verbs.
# Pieces such as *hel* begin longer words, and ␣ marks the end of a word.
# Now delete *a novel* and keep the full stop.
# Whose list changes, and to what kind of verb?

# %% [markdown] tags=["goals"]
# By the end of this chapter you will be able to
#
# - say what you can ask a model that reads both sides, and write BERT's masking;
# - turn a GPT into a BERT, and compare both with counting;
# - use a pretrained network where you have only fifty labels, in two ways;
# - write a LoRA layer and count what it trains.

# %% [markdown] tags=["needs"]
# You will need [GPT](13_gpt.ipynb), and from [The Transformer](10_transformer.ipynb) the encoder's block.

# %% jupyter={"source_hidden": true}
cu.recall("transformer", "gpt", "masks")

# %% [markdown]
# ## Hide and restore: masked tokens
#
# A GPT can be asked for every next token because the causal mask hides it.
# A network that reads both sides has no such mask, so the token we ask for is right there, and the network would only learn to copy.
# So we first have to hide what we ask for.
#
# **[BERT](C_glossary.ipynb#masked-token-pretraining)** ([Devlin et al., 2019](https://arxiv.org/abs/1810.04805)) *picks* 15% of the ordinary tokens of a text at random.
# In a text of 200 tokens, BERT is asked for these 30, and a GPT for 199.
# At the picked positions it reads
#
# - the token `<mask>` in 80% of the cases,
# - a random ordinary token in 10%,
# - the token itself in 10%.
#
# Why not a mask everywhere?
# Later we want to use the network on texts that have no masks.
# Because a picked token may also be unchanged or wrong, the network can't trust what it reads and has to work out what belongs at each position.
#
# ### Exercise 1 · Find the bug
#
# *bug · 8 minutes*
#
# A colleague masks with the function below.
# The loss soon falls to nearly zero, but on real sentences the network knows nothing.
# The cell counts what the network gets to see.
# Write `fixed_masking`, which leaves `ids` as they are.
# The chapter will train with it.
# Ordinary tokens have ids above `mask`.


# %%
def buggy_masking(ids, vocab_size, share=0.15, mask=4):
    """Tokens to be read and targets; -100 where nothing is asked."""
    picked = (torch.rand(ids.shape) < share) & (ids > mask)
    fate = torch.rand(ids.shape)
    random_ids = torch.randint(mask + 1, vocab_size, ids.shape)
    ids[picked & (fate < 0.8)] = mask
    ids[picked & (fate < 0.9)] = random_ids[picked & (fate < 0.9)]
    targets = ids.masked_fill(~picked, -100)
    return ids, targets


read, asked = buggy_masking(torch.randint(5, 512, (100, 20)), 512)
visible = (read == asked)[asked != -100].float().mean()
print(f"masks read: {(read == 4).sum()}; answer visible: {visible:.0%}")


# %% tags=["exercise", "bug"]
def fixed_masking(ids, vocab_size, share=0.15, mask=4):
    """Tokens to be read and targets; -100 where nothing is asked."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.fixed_masking(fixed_masking)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def fixed_masking_solution(ids, vocab_size, share=0.15, mask=4):
    """New tensors; the targets from the ids as they were; random only where nothing was masked."""
    picked = (torch.rand(ids.shape) < share) & (ids > mask)
    fate = torch.rand(ids.shape)
    random_ids = torch.randint(mask + 1, vocab_size, ids.shape)
    tokens = ids.masked_fill(picked & (fate < 0.8), mask)
    tokens = torch.where(picked & (fate >= 0.8) & (fate < 0.9), random_ids, tokens)
    return tokens, ids.masked_fill(~picked, -100)


cu.checks.fixed_masking(fixed_masking_solution)

# %% jupyter={"source_hidden": true}
cu.quiz("bert_and_transfer", "why_not_all")

# %% [markdown]
# ## BERT in one class
#
# If every token of [the last chapter's GPT](13_gpt.ipynb#GPT-in-one-class) may see all the others, we have an encoder, the left half of the [Transformer](10_transformer.ipynb#The-whole-on-one-page).
# Only the padding mask stays, because the sentences of a batch have different lengths.
# The original BERT has norms *after* the sublayers, learned positions, vectors for two segments, a `[CLS]` token whose vector a classifier reads, and a second task (does one segment follow the other?).
# Ours has the GPT's blocks, with norms before and [rotary](09_positions.ipynb) positions, so that the two readers differ only in mask and task.
# Its classifiers read the mean of all vectors.
# A `[CLS]` would have learned its job from the second task, and with single sentences there is no second task.
# The drawing follows the position of a hidden token.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
positions = range(5)
cu.Drawing(
    """
    t0 t1 t2 t3 t4
    b0 b1 b2 b3 b4
    .  .  out .  .
    """,
    nodes={
        **{f"t{i}": cu.Box(token, color="query" if i == 2 else None)
           for i, token in enumerate(("she", "wants", "<mask>", "write", "."))},
        **{f"b{i}": cu.Box("blocks", shape="(d,)", color="wash") for i in positions},
        "out": cu.Box("norm, times embedding^T", shape="(vocabulary,)", color="wash"),
    },
    arrows=[*(f"t{i} -> b2" for i in positions), *(f"t{i} -> b{i}" for i in positions if i != 2), "b2 -> out"],
    alt="Five tokens, she, wants, mask, write, and a full stop, go through the blocks. Arrows lead from all five tokens, those "
    "behind the mask included, to the position of the mask, and only there a norm and the transposed embedding ask for a token.",
    gap=(24, 44),
)  # fmt: skip


# %%
class BERT(nn.Module):
    """(batch, n) ids, (batch,) lengths → (batch, n, vocab_size) logits of tokens."""

    def __init__(self, vocab_size, embed_dim, num_heads, num_layers):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        options = {"norm_first": True, "activation": "gelu", "rotary": True, "dropout": 0.0}
        widths = embed_dim, num_heads, 4 * embed_dim
        blocks = [cu.EncoderLayer(*widths, **options) for _ in range(num_layers)]
        self.layers = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(embed_dim)
        self.output = nn.Linear(embed_dim, vocab_size, bias=False)
        self.output.weight = self.embedding.weight  # weight tying
        nn.init.normal_(self.embedding.weight, std=embed_dim**-0.5)

    def features(self, tokens, lengths):
        """What is known at each position: (batch, n, embed_dim)."""
        real = cu.padding_mask(lengths, tokens.shape[1])  # and no causal mask
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, real)
        return self.norm(x)

    def forward(self, tokens, lengths):
        return self.output(self.features(tokens, lengths))


# %% [markdown]
# What does the missing mask change?
# We gave the same weights to your BERT and to a GPT, replaced the token at position 4 of a text of nine tokens, and noted where the logits change.

# %%
subwords, sizes = tasks.texts().subwords, tasks.SIZES

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.seed_everything(0)
bert = BERT(len(subwords), **sizes)
gpt = cu.GPT(len(subwords), **sizes, rotary=True, dropout=0.0)
gpt.load_state_dict(bert.state_dict())  # the names are the same
ids = torch.randint(5, 512, (1, 9))
other = ids.index_fill(1, torch.tensor([4]), 7)
for name, model in (("BERT", bert), ("GPT", gpt)):
    both = [model(text, torch.tensor([9]))[0] for text in (ids, other)]
    moved = (both[0] - both[1]).abs().amax(dim=-1) > 1e-6
    print(f"{name}: {moved.nonzero().flatten().tolist()}")

# %% [markdown]
# In the BERT the logits change at every position, and in the GPT only at the token's own position and after it.
# Reading both sides has a price.
# A BERT can't keep a cache and write on, because every token added at the end changes the vectors at all the other positions.
# With the [encoder–decoder](11_translating.ipynb) we now have the whole family:
#
# | | GPT | BERT | encoder–decoder |
# |---|---|---|---|
# | a token sees | what came before | the whole text | the source, and the target so far |
# | is asked for | each next token | the hidden tokens | each next token of the target |
# | learns | $P(\text{token} \mid \text{left})$ | $P(\text{token} \mid \text{left}, \text{right})$ | $P(\text{token} \mid \text{source}, \text{left})$ |
# | made for | writing | understanding | translating |
#
# ## Against counting
#
# To judge a loss for filling gaps we need a **[baseline](C_glossary.ipynb#baseline)**.
# The GPT's baseline was counting, and counting can read both sides as well.
# We take the [Kneser–Ney trigrams](13_gpt.ipynb#What-counting-knows) of the last chapter, now of [subwords](C_glossary.ipynb#subword), and try every token $w$ in the gap.
# With two tokens on each side, its probability is proportional to how probable the whole row $l_2\, l_1\, w\, r_1\, r_2$ is with $w$ in the middle:
#
# $$P(w \mid l_2, l_1, r_1, r_2) \;\propto\; P(w \mid l_2, l_1)\; P(r_1 \mid l_1, w)\; P(r_2 \mid w, r_1)$$
#
# In each of the 750 sentences of the **test set**, which no model has seen, we hide one ordinary token.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "A trigram model that looks at the two tokens on the left has a loss of 2.43 at the hidden tokens. What is its loss if it also looks at the two on the right?",
    (0.0, 3.0),
    answer=0.98,
    within=0.3,
    wrong={
        "less": "Then nearly every gap would be certain. But which noun belongs between *the* and a full stop?",
        "more": "Think of *to ___ a novel*. Doesn't the right side rule out more than the left one?",
    },
    why="0.98. The right side alone says a little less than the left one, but each rules out much of what the other leaves open.",
)

# %% [markdown]
# **A gap is much easier to fill if you may read both sides.**
# So each network gets a baseline of its own: the GPT meets n-grams that read the left side, and the BERT meets n-grams that read both.
#
# Our sentences are short, so we pick 40% of the tokens, a share that works for large models as well ([Wettig et al., 2023](https://arxiv.org/abs/2202.08005)).
# The folded loop is the one of the last chapter, fed by your masking.
# Before it runs, a few checks look for costly mistakes.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
masking = cu.choose(fixed_masking, tasks.masking)
table, lengths = tasks.sentences()  # ids, the shortest sentence first


def hide(ids):
    """Pick 40% of the tokens: what is read, and what is asked."""
    return masking(ids, len(subwords), share=0.4)


def batch(ask=hide):
    """64 sentences of nearly the same length."""
    rows = torch.randint(len(table) - 64, ()) + torch.arange(64)
    tokens, targets = ask(table[rows, : lengths[rows].max()])
    return TextBatch(tokens, lengths[rows], targets)


def summed_loss(model, batch):
    """The loss, summed over the picked tokens, and their number."""
    picked = batch.targets >= 0
    logits = model.output(model.features(batch.tokens, batch.lengths)[picked])
    return F.cross_entropy(logits, batch.targets[picked], reduction="sum"), picked.sum()


def train(model, steps, ask=hide, lr=1e-2, watch=None):
    """The loss per picked token at each step; `watch` may look on."""
    options = {"betas": (0.9, 0.99), "weight_decay": 0.1}
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr, **options), []
    for step in range(steps):
        total, count = summed_loss(model, batch(ask))
        rise, fall = min((step + 1) / 30, 1), (1 + math.cos(math.pi * step / steps)) / 2
        optimizer.param_groups[0]["lr"] = lr * rise * fall
        optimizer.zero_grad()
        (total / count).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append((total / count).item())
        if watch:
            watch(step + 1)
    return losses


# %% tags=["hide-input"] jupyter={"source_hidden": true}
d = sizes["embed_dim"]
by_hand = len(subwords) * d + 2 * (12 * d**2 + 13 * d) + 2 * d
cu.before_training(bert, batch(), summed_loss, expected=by_hand, lr=3e-4)

# %% tags=["nbval-ignore-output"]
steps = 200  # try 50 … 600
cu.seed_everything(0)
bert = BERT(len(subwords), **sizes)
train(bert, steps)
page_loss, counted = tasks.hidden_loss(bert), trigrams.hidden_losses()
print(f"loss at the hidden tokens {page_loss:.2f}")

# %% [markdown]
# A few seconds don't get us far, so the figure shows longer runs.
# Its two dashed lines are the losses of counting.

# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
fig, ax = cu.subplots(
    width=6.6, height=3.4,
    alt="Loss at hidden tokens over 3,600 steps. The lines of the GPTs fall from 6 to about 2, below the dashed line of n-grams on the left, 2.43. "
    "The lines of the BERTs fall below that line after some hundred steps and reach the dashed line of n-grams on both sides, 0.98, at the end. "
    "A dot of the page's own training lies near the beginning.",
)  # fmt: skip
readers = {
    name: cu.stored_runs("bert_and_transfer", "readers", reader=name) for name in ("GPT", "BERT")
}
for (name, runs), color in zip(readers.items(), ("value", "key"), strict=True):
    for run in runs:
        label = name if run.config["seed"] == 0 else None
        ax.plot(*zip(*run.curves["hidden"], strict=True), color=cu.COLORS[color], label=label)
for name, text, shift in (("two left", "the left", 4), ("two each", "each side", -11)):
    ax.axhline(counted[name], color="0.4", linestyle="--", linewidth=1)
    ax.annotate(f"n-grams, two on {text}", (3600, counted[name]), (0, shift),
                textcoords="offset points", ha="right", fontsize=8)  # fmt: skip
ax.plot([steps], [page_loss], "o", color=cu.COLORS["query"], label="yours")
ax.set(xlabel="Step", ylabel="Loss at the hidden tokens (nats)", ylim=(0, 5))
ax.legend()
fig

# %% [markdown]
# The GPT soon leaves the n-grams of its own side behind.
# The BERT draws level with the n-grams of both sides only near the end of its training.
#
# The weights of the BERT at the top of this page fit into your class, so let it fill our gaps, and then one of your own.

# %% tags=["nbval-ignore-output"]
stored = cu.load_model("bert")
pretrained = BERT(**stored.config)
pretrained.load_state_dict(stored.state)


@torch.no_grad()
def fill(text, best=4):
    """The likeliest tokens for the gap, with their probabilities."""
    assert text.count("___") == 1, "Write exactly one ___ into the sentence."
    left, right = (subwords.encode(side) for side in text.split("___"))
    ids = torch.tensor([[2, *left, MASK, *right, 3]])  # between <bos> and <eos>
    probs = pretrained(ids, torch.tensor([ids.shape[1]]))[0, 1 + len(left)].softmax(dim=-1)
    return [(subwords.tokens[i], f"{probs[i]:.2f}") for i in probs.topk(best).indices]


yours = "the cat is ___ the sofa ."  # a sentence of your own
for text in (
    "she wants to ___ .",
    "she wants to ___ a novel .",
    "she wants to ___ a pizza .",
    yours,
):
    print(text, *(" ".join(guess) for guess in fill(text)), sep="  ")

# %% [markdown]
# Where no object follows, the BERT expects *sing* and *work*.
# Before *a novel* it expects verbs that take an object.
# But it would also *read* a pizza.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Where nothing follows the gap, the BERT expects verbs without an object; a novel it doesn't tell from a pizza."
):
    assert {token for token, _ in fill("she wants to ___ .")[:2]} == {"sing␣", "work␣"}
    assert {token for token, _ in fill("she wants to ___ a novel .")[:2]} == {"have␣", "read␣"}
    assert fill("she wants to ___ a pizza .")[0][0] == "read␣"

with cu.guard(
    "The GPT beats the n-grams of its side in each training, and the BERT draws level with those of both."
):
    ends = {name: [run.result["hidden"] for run in runs] for name, runs in readers.items()}
    assert max(ends["GPT"]) < counted["two left"] - 0.3
    assert all(abs(loss - counted["two each"]) < 0.1 for loss in ends["BERT"])

# %% [markdown]
# ## Fifty labels: fine-tuning
#
# Text is cheap, but labels are expensive.
# That is why we **pretrain** a network on plain text and then adapt it to the task at hand, which is called **transfer**.
# How far do fifty labels go, and how far do we get with none?
#
# Our task is *order*: is a sentence as it should be, or have two neighboring words changed places?
# Each sentence comes in both forms, so a **classifier** that knows only *which* words there are, a **bag of words**, has to give both the same answer.
# Its **accuracy**, the share of right answers, is exactly ½.

# %% tags=["nbval-ignore-output"]
test, few = tasks.order_task()[1], tasks.few(50, seed=0)
print(*test.texts[:4], sep="\n")

# %% [markdown]
# We begin without any label: which of the two orders is likelier?
# The GPT can answer, because the product of its next-token probabilities is the probability of the sentence, $P(x)$.


# %% tags=["nbval-ignore-output"]
@torch.no_grad()
def minus_log_p(model, data):
    """(sentences,) −ln P of each: the losses of all tokens, added up."""
    logits = model(data.ids[:, :-1])
    losses = F.cross_entropy(logits.mT, data.ids[:, 1:], ignore_index=0, reduction="none")
    return losses.sum(dim=1)


left = cu.load_model("gpt_left")
gpt = cu.GPT(**left.config, rotary=True, dropout=0.0)
gpt.load_state_dict(left.state)
loss = minus_log_p(gpt, test)
pairs = (loss[1::2] > loss[::2]).float().mean().item()
print(f"in {pairs:.1%} of {len(loss) // 2} pairs the swapped order is the less likely one")

# %% [markdown]
# **Without a single label the GPT picks the right order in 99.7% of the pairs**, and counting in 98.5%.
# Using a network like this, without any example of the task, is called **[zero-shot](C_glossary.ipynb#zero-shot)**.
#
# What are labels for, then?
# A *single* sentence has nothing to be compared with, and a long one is improbable in any order.
# The labels have to tell us how improbable is too improbable.
#
# The usual way is **[fine-tuning](C_glossary.ipynb#fine-tuning)**: we put a *new output layer* on the mean of the network's features and train everything a little further, with the labels.
# But there is a second way: don't add a layer at all, and let the network **score** the sentence, which is all it was ever trained to do.
# A GPT's score is $-\ln P(x)$, the sum of its losses.
# A BERT gives no $P(x)$, but we can hide each token in turn and add up these losses.
# The sum is minus the **pseudo-log-likelihood** ([Salazar et al., 2020](https://arxiv.org/abs/1910.14659)).
# Then the labels only have to choose one number, the threshold above which we say *swapped*.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
cu.predict(
    "Fine-tuned with fifty labels, a new output layer on our BERT reaches an accuracy of about 0.7. What accuracy does the same BERT reach if the labels only choose the threshold?",
    (0.5, 1.0),
    answer=0.92,
    within=0.06,
    wrong={
        "less": "One number is little to learn, that's true. But how much does the BERT already know about sentences before it sees a label?",
        "more": "Some sentences are rare in any order. On which side of a single threshold do they fall?",
    },
    why="0.92. The BERT answers a question that it has practiced on thousands of sentences, while the new layer has to find out from 25 pairs what a swap looks like in the mean of the features.",
)

# %% [markdown]
# The next two cells try both ways.
# As a control, the first also trains a new layer **from scratch**, on a network that has read nothing.

# %% tags=["nbval-ignore-output"]
for name, weights in (("from scratch", None), ("pretrained", stored.state)):
    torch.manual_seed(0)
    body = BERT(**stored.config)
    body.load_state_dict(weights or body.state_dict())
    classifier = SentenceClassifier(body, 2)
    tuning.fine_tune(classifier, few, steps=120, lr=1e-3, seed=0)
    print(f"{name}, a new output layer: accuracy {tuning.accuracy(classifier, test):.2f}")


# %% tags=["hide-input", "nbval-ignore-output"] jupyter={"source_hidden": true}
@torch.no_grad()
def strangeness(model, data):
    """(sentences,) the losses of all tokens, each hidden in turn, added up."""
    total = torch.zeros(len(data.ids))
    for i in range(1, data.ids.shape[1] - 1):
        rows = data.lengths > i + 1  # those with an ordinary token there
        tokens = data.ids[rows].clone()
        tokens[:, i] = MASK
        features = model.features(tokens, data.lengths[rows])[:, i]
        losses = F.cross_entropy(model.output(features), data.ids[rows, i], reduction="none")
        total[rows] += losses
    return total


def best_threshold(scores, labels):
    """The score above which to say "swapped", by the labels."""
    right = [((scores > cut) == labels.bool()).float().mean() for cut in scores]
    return scores[torch.stack(right).argmax()]


threshold = best_threshold(strangeness(pretrained, few), few.labels)
called = (strangeness(pretrained, test) > threshold).long()
print(f"scored by the BERT itself: accuracy {accuracy(called, test.labels):.2f}")

# %% [markdown]
# One run says little, so the figure shows three of each kind, with other labels each time.
# Solid marks are for fifty labels, hollow ones for a thousand.
# The n-grams score a sentence as the GPT does.


# %% tags=["hide-input"] jupyter={"source_hidden": true}
def right(name, labels, **config):
    """Accuracies of stored runs with so many labels."""
    best = {"highest": "val"} if name == "transfer" else {}  # of several rates
    runs = cu.stored_runs("bert_and_transfer", name, **best, **config)
    if name == "transfer":
        return [run.result["right"] for run in runs if run.config["labels"] == labels]
    return [run.result[f"order {labels}"] for run in runs if f"order {labels}" in run.result]


kinds = {
    "from scratch, new layer": ("transfer", {"beginning": "from scratch"}),
    "from scratch, 4 × the steps": ("longer", {}),
    "BERT, new layer": ("transfer", {"beginning": "BERT", "method": "all"}),
    "GPT, likelihood score": ("by_reader", {"reader": "GPT"}),
    "BERT, pseudo-likelihood score": ("by_reader", {"reader": "BERT"}),
    "n-gram score": ("by_counts", {"side": "left"}),
}
ways = {
    kind: {labels: right(name, labels, **config) for labels in (50, 1000)}
    for kind, (name, config) in kinds.items()
}
fig, ax = cu.subplots(
    width=6.6, height=3.0,
    alt="Test accuracy on order of six ways, three runs each. Networks from scratch lie at one half with 50 labels, and at 0.53 to 0.56 with 1,000 and four times the steps. With a new layer the BERT reaches about 0.7 with 50 labels, and 0.90 to 0.93 with 1,000. By their scores, with either number of labels, the GPT reaches 0.93 to 0.94, the BERT 0.91 to 0.92, and n-grams 0.90.",
)  # fmt: skip
for row, way in enumerate(ways.values()):
    color = cu.COLORS["wrong" if row == 5 else "key"]
    for count, shift, fill_style in ((50, -0.15, "full"), (1000, 0.15, "none")):
        points = way[count]
        ax.plot(points, [row + shift] * len(points), "o", color=color, fillstyle=fill_style)
ax.plot([], [], "o", color="0.3", label="50 labels")
ax.plot([], [], "o", color="0.3", fillstyle="none", label="1,000 labels")
ax.set_yticks(range(len(ways)), ways)
ax.set(xlabel="Test accuracy", xlim=(0.45, 1), ylim=(5.6, -0.6))
ax.legend(loc="upper right")
fig

# %% [markdown]
# **With few labels, ask a network the question it has already practiced.**
# With a score and a threshold, the GPT and the BERT are far ahead of a new layer that learns from fifty labels.
# The GPT is best, and our BERT is about level with the n-grams.
# With a thousand labels the new layer catches up with the BERT's score, but not with the GPT's.
#
# A **[prompt](C_glossary.ipynb#prompt)**, too, puts a task into a form that the network has practiced.
#
# A threshold only helps where the label changes how probable a sentence is.
# It wouldn't tell us whether a sentence is about food.
#
# Is *your* sentence in order?
# Write one, swap two neighbors, and ask the BERT about both.

# %% tags=["nbval-ignore-output"]
mine = ["she wants to read a book .", "she wants to read book a ."]  # yours, in two orders
strange = strangeness(pretrained, tasks.labeled([(text, 0) for text in mine])).tolist()
for loss, text in zip([*strange, threshold], [*mine, "the threshold"], strict=True):
    print(f"{loss:5.1f}  {text}")

# %% [markdown]
# The threshold tells these two apart.
# But *the old woman reads a book .* is called swapped although nothing is wrong with it, because its score of 18.8 is above the threshold.
# With *book a* it would score even more, 28.8.
# If you have both orders, compare them with each other.

# %% tags=["hide-input"] jupyter={"source_hidden": true}
Markdown(
    "<details><summary><em>How sure is this?</em></summary>\n\n"
    "All the networks that score are the two at the top of this page, and the new layers sit on that BERT or on networks from scratch. "
    "The new layers had an advantage that the threshold didn't have: each used the best of four learning rates, chosen on 500 further labeled sentences. "
    "There were three draws of labels for each. The network with four times the steps had only one rate. "
    "\n\nWe pretrained a second pair of networks, all at one learning rate, and asked both pairs in another way, for the loss of the strangest token alone. "
    "With fifty labels the GPTs then reached 0.95 and 0.93, and the BERTs 0.92 and 0.83, so a BERT can also be behind counting. "
    "\n\nThe BERTs were still getting better when we stopped. In training 40% of their tokens were hidden, and in the test only one, so we can't say why they draw level with counting so late. "
    "All sentences come from one small grammar and a few hundred everyday sentences, so don't expect these numbers on other text. "
    "\n\n</details>"
)

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "With fifty labels, the scores of GPT and BERT reach a higher accuracy than a new layer on the BERT."
):
    new_layers = [right for kind in list(ways)[:3] for right in ways[kind][50]]
    for name in ("GPT, likelihood score", "BERT, pseudo-likelihood score"):
        assert min(ways[name][50]) > max(new_layers) + 0.05

with cu.guard(
    "By its score the GPT is ahead of the n-grams, and the BERT is about level with them."
):
    by_counting = ways["n-gram score"][50]
    assert min(ways["GPT, likelihood score"][50]) > max(by_counting) + 0.02
    of_bert = ways["BERT, pseudo-likelihood score"][50]
    assert all(abs(right - max(by_counting)) < 0.07 for right in of_bert)

with cu.guard(
    "The threshold tells the two orders apart; with an old woman both are above it, and the right order is still below the other.",
    given=mine == ["she wants to read a book .", "she wants to read book a ."],
):
    assert strange[0] + 2 < threshold < strange[1] - 2
    women = ["the old woman reads a book .", "the old woman reads book a ."]
    in_order, swapped = strangeness(pretrained, tasks.labeled([(text, 0) for text in women]))
    assert abs(in_order - 18.8) < 0.1 and abs(swapped - 28.8) < 0.1
    assert threshold < in_order

with cu.guard("By its strangest token one of the two BERTs is behind the n-grams, and no GPT is."):
    strangest = {name: [run.result["order 50"] for run in runs] for name, runs in readers.items()}
    assert (
        min(strangest["BERT"]) < min(by_counting) - 0.03 < max(by_counting) < min(strangest["GPT"])
    )

with cu.guard("With a thousand labels the new layer on the BERT catches up."):
    score = ways["BERT, pseudo-likelihood score"][1000]
    assert min(ways["BERT, new layer"][1000]) > max(score) - 0.03

with cu.guard(
    "Without labels the GPT picks the right order of nearly all pairs, and counting of most."
):
    alone = {
        name: [run.result["pairs"] for run in cu.stored_runs("bert_and_transfer", name, **config)]
        for name, config in (("by_reader", {"reader": "GPT"}), ("by_counts", {"side": "left"}))
    }
    assert min(alone["by_reader"]) > 0.99 > max(alone["by_counts"]) > 0.98
    assert pairs > 0.99

with cu.guard("A network from scratch learns nothing from fifty labels."):
    assert all(abs(right - 0.5) < 0.03 for right in ways["from scratch, new layer"][50])

# %% jupyter={"source_hidden": true}
cu.quiz("bert_and_transfer", "same_bag")

# %% [markdown]
# ## A little is enough: LoRA
#
# Fine-tuning changes every weight, so each task ends up with a copy of the whole network.
# **[LoRA](C_glossary.ipynb#lora)** ([Hu et al., 2022](https://arxiv.org/abs/2106.09685)) freezes a linear layer and learns a small change next to it, the product of two narrow matrices:
#
# $$x \mapsto xW + b + \frac{\alpha}{r}\, x A B^\top, \qquad A \in \mathbb R^{\text{in} \times r},\ B \in \mathbb R^{\text{out} \times r}$$
#
# At first $A$ is random and $B$ is zero, so the network gives exactly what it gave before.
# For example, take a step with $x = (1, 2)$, $r = \alpha = 1$, $A = (3, 1)^\top$, and $B = (0, 0)^\top$.
# Then $xA = 5$, and the change is $5B^\top = 0$, but the gradient of $B$ is 5 times that of the output.
# So $B$ learns at once, and $A$ follows.
# A layer from 64 to 256 features has 16,384 weights, and with $r = 4$ the change needs only $4 \cdot (64 + 256) = 1{,}280$.
#
# ### Exercise 2 · A LoRA layer
#
# *build · 12 minutes*
#
# Write `my_lora`.
# It takes an `nn.Linear` and returns an `nn.Module`, so write a class inside the function, with `__init__` and `forward`, and return an object of it.
# Freeze the linear layer with `requires_grad_(False)`, and make $A$ and $B$ parameters.
# Small random numbers will do for $A$.


# %% tags=["exercise", "build"]
def my_lora(linear, rank=4, alpha=8.0):
    """nn.Linear → a module, equal at the start, that learns a change of this rank."""
    ...


# %% tags=["check"] jupyter={"source_hidden": true}
cu.checks.my_lora(my_lora)


# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def my_lora_solution(linear, rank=4, alpha=8.0):
    """B begins as zeros, so that nothing changes at first; A at random, so that B has a gradient."""

    class Beside(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = linear.requires_grad_(False)
            widest = 1 / math.sqrt(linear.in_features)  # as in loralib and PEFT
            A = torch.empty(linear.in_features, rank).uniform_(-widest, widest)
            self.A = nn.Parameter(A)
            self.B = nn.Parameter(torch.zeros(linear.out_features, rank))

        def forward(self, x):
            return self.linear(x) + alpha / rank * (x @ self.A @ self.B.T)

    return Beside()


cu.checks.my_lora(my_lora_solution)

# %% [markdown]
# The paper's $A$ is ours transposed.
# Which learning rate is good depends on how large $A$ begins, so the course's layer draws it as libraries do, evenly between $\pm 1/\sqrt{\text{in}}$, like the weights of an `nn.Linear`.
#
# Now replace both linear layers of each feed-forward network with yours, leave everything else frozen, and train with a thousand labels.

# %% tags=["nbval-ignore-output"]
lora = cu.choose(my_lora, tuning.LoRA)
body = BERT(**stored.config).requires_grad_(False)
body.load_state_dict(stored.state)
for layer in body.layers:
    for i in (0, 3):  # the two linear layers of the feed-forward network
        layer.feed_forward[i] = lora(layer.feed_forward[i], rank=4)
torch.manual_seed(0)
small = SentenceClassifier(body, 2)
trained = sum(p.numel() for p in small.parameters() if p.requires_grad)
tuning.fine_tune(small, tasks.few(1000, seed=0), steps=200, lr=1e-2, seed=0)
print(f"{trained:,} parameters trained: accuracy {tuning.accuracy(small, test):.2f}")

# %% [markdown]
# We also trained twice as long, each method at its best learning rate.
# LoRA then reached an accuracy of 0.87, and fine-tuning all 132,994 weights 0.91.
# The cheapest way is **linear probing**: the features stay frozen, and only a new output layer of 130 weights, the **probe**, is trained.
# It reached 0.66.
# All three are means of three draws ([further page](14_bert_and_transfer_further.ipynb#What-LoRA-is-worth)).
# Here a twenty-fifth of the weights brings most of the gain over the probe.
# Each task keeps only these few, and all tasks share the rest.

# %% tags=["guard"] jupyter={"source_hidden": true}
with cu.guard(
    "Fine-tuning all weights reaches an accuracy of 0.91, LoRA 0.87, and linear probing 0.66."
):
    for method, mean in (("all", 0.91), ("LoRA", 0.87), ("output", 0.66)):
        three = right("transfer", 1000, beginning="BERT", method=method)
        assert abs(sum(three) / 3 - mean) < 0.006

# %% [markdown]
# ## Take-aways
#
# - A model that reads both sides can only be asked about tokens that we hide from it.
#   BERT picks tokens, and reads most of them as a mask, some as another token, and some as they are.
# - Reading both sides makes a gap much easier to fill, for counting as well as for a network.
#   The fair baseline is an n-gram model that reads the same sides.
# - With fifty labels it paid far more here to ask the network the question it had practiced than to train a new layer, which needed a thousand labels to catch up with the BERT's score.
#   To say which of two orders is likelier, the GPT needed no labels at all.

# %% [markdown] tags=["next"]
# Next: [Vision transformers](15_vision_transformers.ipynb).
# [BERT and transfer: LoRA's worth, and heirs](14_bert_and_transfer_further.ipynb) compares four ways to fine-tune, tries an autoencoder, and shows what later models changed.

# %% [markdown]
# ## Quiz

# %% jupyter={"source_hidden": true}
cu.quiz("bert_and_transfer")

# %% [markdown]
# ## References
#
# - Devlin, J., Chang, M.-W., Lee, K. and Toutanova, K. (2019).
#   [BERT: pre-training of deep bidirectional transformers for language understanding](https://arxiv.org/abs/1810.04805).
#   NAACL.
#   Section 3.1: masking.
# - Hu, E. J., Shen, Y., Wallis, P., Allen-Zhu, Z., Li, Y., Wang, S., Wang, L. and Chen, W. (2022).
#   [LoRA: low-rank adaptation of large language models](https://arxiv.org/abs/2106.09685).
#   ICLR.
# - Salazar, J., Liang, D., Nguyen, T. Q. and Kirchhoff, K. (2020).
#   [Masked language model scoring](https://arxiv.org/abs/1910.14659).
#   ACL.
# - Wettig, A., Gao, T., Zhong, Z. and Chen, D. (2023).
#   [Should you mask 15% in masked language modeling?](https://arxiv.org/abs/2202.08005).
#   EACL.
