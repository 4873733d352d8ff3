"""SmolLM2-135M-Instruct: its weights by our names, its tokenizer, its chat template; and what was recorded with it.

Allal et al. (2025), "SmolLM2: when Smol goes big". The file is fetched by `cu.fetch("smollm2")`. Where it isn't,
`known` shows what a run with it gave, so that every cell of the chapter has something to show.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from IPython import get_ipython
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.attention import MultiHeadAttention
from course_utils.cache import KVCache
from course_utils.data.prose import story_text
from course_utils.data.registry import cached
from course_utils.data.text import SPACELESS
from course_utils.decoding import sample
from course_utils.kit.runs import StoredRun, stored_runs
from course_utils.layers import SwiGLU
from course_utils.lessons.real_weights.gguf import GGUF
from course_utils.models.language import GPT
from course_utils.positions import Rotation

SIZES = {"embed_dim": 576, "num_heads": 9, "num_kv_heads": 3, "num_layers": 30, "ffn_dim": 1536}
VOCAB, BASE = 49_152, 100_000.0
END = 2
"""The id of <|im_end|>, which ends a turn."""

MARKS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>", "<file_sep>", "<filename>",
    "<gh_stars>", "<issue_start>", "<issue_comment>", "<issue_closed>", "<jupyter_start>", "<jupyter_text>",
    "<jupyter_code>", "<jupyter_output>", "<jupyter_script>", "<empty_output>",
)  # fmt: skip
"""SmolLM2's special tokens: `SmolLM.encode` reads them as such, so that they are none of a reader's words."""

A_BLOCK = bytes.fromhex("0f30d8b9458765406f65164b677664502267655a")
"""The first block of layer 0's query projection, in Q4_1."""

NAMES = {
    "token_embd": "embedding", "output_norm": "norm", "blk": "layers", "ffn_norm": "feed_forward_norm",
    "attn_norm": "attention_norm", "attn_q": "attention.query_proj", "attn_k": "attention.key_proj",
    "attn_v": "attention.value_proj", "attn_output": "attention.out_proj", "ffn_gate": "feed_forward.gate",
    "ffn_up": "feed_forward.up", "ffn_down": "feed_forward.down",
}  # fmt: skip
"""A part's name in the file → its name in our classes."""


def our_name(name: str) -> str:
    """A name of ours for one of the file: "blk.7.attn_q" becomes "layers.7.attention.query_proj"."""
    return ".".join(NAMES.get(part, part) for part in name.split("."))


def weights_of(file: GGUF) -> dict[str, Tensor]:
    """The state dict of our class: name → float32; the output layer has the embedding's weights."""
    state = {our_name(name): file.read(name) for name in file.tensors}
    state.setdefault("output.weight", state["embedding.weight"])
    return state


def tokenizer_of(file: GGUF) -> Tokenizer:
    """Byte-level pieces with the file's merges; each digit is a token, and the marks of the template are whole."""
    tokens, kinds = (file.metadata[f"tokenizer.ggml.{key}"] for key in ("tokens", "token_type"))
    merges = [tuple(merge.split(" ")) for merge in file.metadata["tokenizer.ggml.merges"]]
    made = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([t for t, kind in zip(tokens, kinds, strict=True) if kind == 3])
    return made


def chat(question: str, system: str = "") -> str:
    """A question in SmolLM2's chat template, up to where the answer begins; without a system prompt by default.

    Raises:
        ValueError: the question or the system prompt holds one of `MARKS`; <|im_end|> would end its turn.
    """
    turns = [("system", system)] * bool(system) + [("user", question)]
    for mark in MARKS:
        if mark in question or mark in system:
            raise ValueError(
                f"the text holds {mark}, which SmolLM2 reads as a mark of its template and not as letters; "
                f"write it with a space, {mark[0]} {mark[1:]}"
            )
    said = "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in turns)
    return said + "<|im_start|>assistant\n"


class Block(nn.Module):
    """The block of *GPT* with RMSNorm, SwiGLU, grouped keys and values, and rotary positions.

    Args:
        embed_dim, num_heads, num_kv_heads, ffn_dim: as in `layers.EncoderLayer`.
        base: of the rotary angles.
    """

    def __init__(
        self, embed_dim: int, num_heads: int, num_kv_heads: int, ffn_dim: int, base: float
    ):
        super().__init__()
        self.attention = MultiHeadAttention(
            embed_dim, num_heads, num_kv_heads=num_kv_heads, bias=False
        )
        self.feed_forward = SwiGLU(embed_dim, ffn_dim)
        self.attention_norm = nn.RMSNorm(embed_dim, eps=1e-5)
        self.feed_forward_norm = nn.RMSNorm(embed_dim, eps=1e-5)
        self.head_dim, self.base = embed_dim // num_heads, base

    def forward(self, x: Tensor, cache: KVCache | None = None) -> Tensor:
        """(batch, length, embed_dim) → the same shape; with a `cache`, x are the new tokens."""
        start = 0 if cache is None else cache.length
        rotation = Rotation(x.shape[1], self.head_dim, start=start, base=self.base, device=x.device)
        y = self.attention_norm(x)
        x = x + self.attention(y, y, y, is_causal=True, cache=cache, encode=rotation)
        return x + self.feed_forward(self.feed_forward_norm(x))


@dataclass
class SmolLM:
    """A model that holds SmolLM2's weights, and its tokenizer."""

    model: nn.Module
    tokenizer: Tokenizer

    def encode(self, *texts: str) -> Tensor:
        """Ids of texts with equally many tokens, (texts, n); others are refused, since nothing is padded."""
        rows = [self.tokenizer.encode(text).ids for text in texts]
        if len({len(row) for row in rows}) > 1:
            raise ValueError(
                f"the texts have {[len(row) for row in rows]} tokens; all need as many, so encode one at a time"
            )
        return torch.tensor(rows)

    def positions(self, text: str, word: str) -> list[int]:
        """The positions of the tokens that a word of a text consists of; of all of them, if it comes again.

        Raises:
            ValueError: the word does not occur.
        """
        whole = "{}" if SPACELESS.search(word) else r"(?<!\w){}(?!\w)"
        found = [match.span() for match in re.finditer(whole.format(re.escape(word)), text)]
        if not (word and found):
            raise ValueError(f"the word {word!r} does not occur in {text!r}")
        return [
            place
            for place, (begin, end) in enumerate(self.tokenizer.encode(text).offsets)
            if any(end > first and begin < last for first, last in found)
        ]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these ids, marks of the template included."""
        return self.tokenizer.decode([int(i) for i in ids], skip_special_tokens=False)

    def write(
        self,
        text: str,
        max_new: int = 30,
        temperature: float = 0.0,
        seed: int = 0,
        mark: str = "",
    ) -> str:
        """The text with which the model goes on, until it ends its turn; greedily by default.

        `mark` is put behind a text that had not ended after `max_new` tokens.
        """
        draws = torch.Generator().manual_seed(seed)
        (new,) = sample(
            self.model,
            self.encode(text),
            max_new=max_new,
            temperature=temperature,
            end=END,
            generator=draws,
        )
        return self.decode(new) + mark * (len(new) == max_new)

    @torch.inference_mode()
    def write_surely(self, text: str, max_new: int = 7) -> tuple[str, float]:
        """The text with which the model goes on, greedily, and the probability of the first token."""
        state, new, said, first = self.model.start(), self.encode(text), [], 0.0
        for _ in range(max_new):
            probs, best = self.model.step(new, state)[0].softmax(-1).max(-1)
            if best == END:
                break
            first = first or round(probs.item(), 3)
            said.append(best.item())
            new = best.view(1, 1)
        return self.decode(said), first


def fill(model: nn.Module, file: GGUF) -> SmolLM:
    """Put the file's weights into a model that was made on the device "meta", for reading only."""
    model.load_state_dict(weights_of(file), assign=True)
    model.output.weight = model.embedding.weight
    return SmolLM(model.eval().requires_grad_(False), tokenizer_of(file))


@cache
def reference() -> SmolLM:
    """SmolLM2 in the library's `GPT`, from the file in the cache.

    Raises:
        FileNotFoundError: the file isn't there.
    """
    path = cached("smollm2")
    if path is None:
        raise FileNotFoundError('the weights are missing; cu.fetch("smollm2") brings them')
    with torch.device("meta"):
        model = GPT(
            VOCAB, **SIZES, activation="swiglu", norm="rms", rotary=True, rotary_base=BASE,
            bias=False, dropout=0.0,
        )  # fmt: skip
    return fill(model, GGUF(path))


def known(experiment: Callable[..., Any], lm: SmolLM | None, **case: Any) -> Any:
    """The result of an experiment: computed where the weights are, else as it was recorded with them.

    Args:
        experiment: a function of `lm` and of the case, which returns what JSON can hold.
        lm: the model with its weights, or None.
        case: the arguments; where they were not recorded, the case that has most of them is shown, and a line says so.
    """
    if lm is not None:
        with torch.inference_mode():
            return experiment(lm, **case)
    runs = stored_runs("real_weights", experiment.__name__)

    def likeness(run: StoredRun) -> tuple[bool, int]:
        return run.config == case, sum(run.config.get(key) == case[key] for key in case)

    run = max(runs, key=likeness)
    line = f"Recorded on {run.date}. With the weights, this cell computes it."
    other = {key: run.config.get(key) for key in case if run.config.get(key) != case[key]}
    if other:
        asked, shown = (", ".join(repr(each[key]) for key in other) for each in (case, other))
        line = f"Without the weights there is no answer for {asked}. Here is {shown}, recorded on {run.date}."
    _say_once(line)
    return run.examples[0]["gave"]


_said: set[tuple[int, str]] = set()


def _say_once(line: str) -> None:
    """Print a line, once in each run of a cell."""
    shell = get_ipython()
    place = (shell.execution_count if shell else 0, line)
    if place not in _said or shell is None:
        _said.add(place)
        print(line)


def loss_on(lm: SmolLM, text: str) -> float:
    """The mean loss in nats a token of a text, read behind <|endoftext|>."""
    return _mean_loss(lm, lm.encode(text)[0])


def loss_on_story(lm: SmolLM) -> float:
    """The mean loss in nats a token on the course's story, two rows of 200 tokens; no model of 2024 has read it."""
    first, second = lm.encode(story_text())[0][:400].view(2, 200)
    return (_mean_loss(lm, first) + _mean_loss(lm, second)) / 2


@torch.inference_mode()
def _mean_loss(lm: SmolLM, ids: Tensor) -> float:
    seen = torch.cat([torch.zeros(1, dtype=torch.long), ids[:-1]])
    return F.cross_entropy(lm.model(seen[None])[0], ids).item()
