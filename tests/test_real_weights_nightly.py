"""With the real weights: what was recorded comes out again, and Hugging Face's own code gives the same logits.

By night only, since the weights are 98 MB and the other library comes from the network as well; where they are not to
be had, these tests are skipped and say why.
"""

import contextlib
import json
import math
import subprocess
import sys
import sysconfig
import venv

import numpy as np
import pytest
import torch

import course_utils as cu
from course_utils.data.registry import DataUnavailable, cached
from course_utils.files import ROOT, data_path
from course_utils.kit import runs

pytestmark = [pytest.mark.nightly, pytest.mark.slow, pytest.mark.timeout(3600)]

DECLARED = runs.declared("real_weights")
OF_THE_DAY = {"search"}
"""Runs that read the course's own pages, so they give other numbers when a page has changed."""
STORED = runs.read("real_weights")


@pytest.fixture(scope="module")
def lm():
    """SmolLM2 in the library's GPT, from the fetched file."""
    with contextlib.suppress(DataUnavailable):  # then only what needs it fails
        cu.fetch("minilm-tokenizer")
        cu.fetch("minilm")
    try:
        cu.fetch("smollm2")
    except DataUnavailable as error:
        pytest.skip(str(error))
    from course_utils.lessons.real_weights.smollm import reference

    return reference()


# What was recorded -------------------------------------------------------------------------------


def leaves(value, path=""):
    """Each number and each text of a nested value, with its place: an answer's percents count one by one."""
    match value:
        case dict():
            for key, inner in value.items():
                yield from leaves(inner, f"{path}/{key}")
        case list() | tuple():
            for index, inner in enumerate(value):
                yield from leaves(inner, f"{path}/{index}")
        case str() if value.replace(" ", "").isdigit():
            yield from leaves([int(part) for part in value.split()], path)
        case _:
            yield path, value


def same(stored, computed) -> bool:
    """To two digits; what was rounded to a whole percent may be rounded to the next one."""
    if isinstance(stored, int | float) and isinstance(computed, int | float):
        whole = isinstance(stored, int) and isinstance(computed, int)
        return math.isclose(stored, computed, rel_tol=0.01, abs_tol=1 if whole else 0.01)
    return stored == computed


def differences(stored, computed) -> list[str]:
    before, now = dict(leaves(stored)), dict(leaves(computed))
    return [
        f"{path}: {before.get(path)!r} was stored, {now.get(path)!r} computed"
        for path in {**before, **now}
        if path not in before or path not in now or not same(before[path], now[path])
    ]


@pytest.mark.parametrize(
    ("stored", "computed", "how_many"),
    [
        ({"p": 0.7425, "of": ["Tokyo", "98 97"]}, {"p": 0.744, "of": ["Tokyo", "98 96"]}, 0),
        ({"p": 0.7425}, {"p": 0.76}, 1),
        ({"of": ["98 97"]}, {"of": ["98 90"]}, 1),
        ({"of": ["Tokyo"]}, {"of": ["Kyoto", "!"]}, 2),
        ({"loss": 4.115}, {"loss": 4.2}, 1),
    ],
)
def test_two_digits_have_to_agree(stored, computed, how_many):
    assert len(differences(stored, computed)) == how_many


@pytest.mark.parametrize("name", sorted(DECLARED.keys() - OF_THE_DAY))
def test_what_was_recorded_comes_out_again(lm, name):
    """Of a run with hundreds of answers one in a hundred may differ: two words can be equally likely to five digits."""
    made = [run for run in STORED if run.name == name]
    assert made, f"no run of {name} is stored"
    for run in made:
        again = DECLARED[name].make(run.config)
        parts = ("result", "curves", "examples")
        stored, computed = ({part: getattr(r, part) for part in parts} for r in (run, again))
        computed = json.loads(json.dumps(computed))  # as it would be stored
        found = differences(stored, computed)
        count = len(list(leaves(stored)))
        print(name, run.config, f"{len(found)} of {count} differ", *found[:3])
        assert len(found) <= count // 100, f"{run.config}: {found[:10]}"


# Parity with Hugging Face ------------------------------------------------------------------------

PEERS = ["transformers==5.23.0", "gguf==0.19.0", "safetensors==0.8.0"]
NO_DEPS = ["accelerate==1.15.0"]  # which would bring a PyTorch of its own
TEXTS = [
    "The capital of France is",
    "def add(a, b):\n    return a + b\n\nfor i in range(10):",
    data_path("prose/story.txt").read_text(encoding="utf-8")[:1500],
    "In 1984 there were 3.14159 pies, 2,000 of them naïve 你好 🙂",
    "<|im_start|>user\nWhat is the capital of Japan?<|im_end|>\n<|im_start|>assistant\n",
]


@pytest.fixture(scope="module")
def peer():
    """The Python of an environment with transformers, which borrows PyTorch from the course's."""
    folder = ROOT / "_build" / "transformers"
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    done, wanted = folder / "done.txt", "\n".join([sys.version, *PEERS, *NO_DEPS])
    if not done.is_file() or done.read_text() != wanted:
        venv.create(folder, clear=True, with_pip=True)
        for packages in (PEERS, ["--no-deps", *NO_DEPS]):
            command = [python, "-m", "pip", "install", "--quiet", "--no-input", *packages]
            installed = subprocess.run(command, capture_output=True, text=True)
            if installed.returncode:
                pytest.skip(f"transformers can't be installed: {installed.stderr[-500:]}")
        code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
        own = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
        borrowed = f"{own.stdout.strip()}/borrowed.pth"
        with open(borrowed, "w", encoding="utf-8") as file:
            file.write(sysconfig.get_paths()["purelib"] + "\n")
        done.write_text(wanted)
    return python


@pytest.fixture(scope="module")
def theirs(lm, peer, tmp_path_factory):
    """Their tokens, logits and weights, by name."""
    folder = tmp_path_factory.mktemp("parity")
    (folder / "texts.json").write_text(json.dumps(TEXTS), encoding="utf-8")
    script = ROOT / "tests" / "parity_with_transformers.py"
    paths = [cu.fetch("smollm2"), folder / "texts.json", folder / "out.npz"]
    more = [cached("minilm"), cached("minilm-tokenizer")]
    paths += more if all(more) else []
    done = subprocess.run([peer, script, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    with np.load(folder / "out.npz") as file:
        return {name: torch.from_numpy(file[name]) for name in file.files}


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_tokens_and_logits_are_those_of_transformers(lm, theirs, number):
    ids, logits = theirs[f"ids_{number}"], theirs[f"logits_{number}"]
    assert lm.encode(TEXTS[number])[0].tolist() == ids.tolist()
    with torch.inference_mode():
        ours = lm.model(ids[None])[0]
    largest = (ours - logits).abs().max().item()
    print(f"{len(ids)} tokens, largest difference of logits {largest:.1e} of {logits.max():.1f}")
    assert largest < 5e-4
    assert torch.equal(ours.argmax(-1), logits.argmax(-1))


def halves(weights, heads):
    """The rows of a head's pairs, which we keep side by side, as transformers keep them: one half, then the other."""
    rows, width = weights.shape
    return weights.view(heads, rows // heads // 2, 2, width).transpose(1, 2).reshape(rows, width)


def test_weights_are_those_of_transformers_bit_for_bit(lm, theirs):
    names = {
        "self_attn.q_proj": "attention.query_proj", "self_attn.k_proj": "attention.key_proj",
        "self_attn.v_proj": "attention.value_proj", "self_attn.o_proj": "attention.out_proj",
        "mlp.gate_proj": "feed_forward.gate", "mlp.up_proj": "feed_forward.up",
        "mlp.down_proj": "feed_forward.down", "input_layernorm": "attention_norm",
        "post_attention_layernorm": "feed_forward_norm",
    }  # fmt: skip
    state = lm.model.state_dict()
    compared = 0
    for name, weights in theirs.items():
        if name.startswith("model.layers."):
            layer, part = name.removeprefix("model.layers.").removesuffix(".weight").split(".", 1)
            ours = state[f"layers.{layer}.{names[part]}.weight"]
            if part.endswith(("q_proj", "k_proj")):
                ours = halves(ours, 9 if "q_proj" in part else 3)
            assert torch.equal(ours, weights), name
            compared += 1
    assert compared == 3 * len(names)
    assert torch.equal(state["norm.weight"], theirs["model.norm.weight"])


def test_sentence_vectors_are_those_of_transformers(theirs):
    if "sentences" not in theirs:
        pytest.skip("the weights of MiniLM can't be had")
    from course_utils.lessons.real_weights.meaning import encoder

    ours = encoder().embed(TEXTS)
    largest = (ours - theirs["sentences"]).abs().max().item()
    print(f"largest difference of sentence vectors {largest:.1e}")
    assert largest < 1e-5
