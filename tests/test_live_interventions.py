"""The page's verbs are those of PyTorch: the same logits after the same interventions."""

import json

import pytest
import torch

import course_utils as cu
from course_utils.interventions import intervene, record_activations
from course_utils.studio.first_states import engine

SHAPE = {"embed_dim": 8, "num_heads": 4, "num_layers": 2, "ffn_dim": 12}
LATER = {"rotary": True, "norm": "rms", "activation": "swiglu", "num_kv_heads": 2, "bias": False}
MODELS = {
    "Transformer": lambda: cu.Transformer(20, 20, **SHAPE),
    "GPT": lambda: cu.GPT(20, **SHAPE, **LATER),
    "BERT": lambda: cu.BERT(20, **SHAPE, activation="relu"),
}
ASKED, OTHER = (
    ([4, 9, 5, 17, 6], [8, 6, 19, 4]),
    ([7, 4, 12, 5, 5], [3, 15, 4, 11]),
)  # source, target
RUN = """(kind, config, tensors, verbs, asked, other) => {
  const unpack = globalThis.live_unpack;
  globalThis.live_unpack = (x) => x;
  const model = new live_engine[kind]({ config, tensors });
  globalThis.live_unpack = unpack;
  const read = ([source, parts]) => {
    const state = model.start(source);
    return parts.flatMap((ids) => model.step(ids, state)).map((row) => [...row]);
  };
  const names = () => JSON.stringify(Object.keys(model)), [before, whole] = [names(), read(asked)];
  const { run, end } = live_engine.recordActivations(model);
  read(other);
  end();
  const acts = [live_engine.intervene(model), live_engine.intervene(model)];
  verbs.forEach(([verb, what], i) => acts[i % 2][verb](what.run ? { ...what, run } : what));
  const logits = read(asked);
  acts.reverse().forEach((one) => one.end());
  return JSON.stringify({ whole, logits, after: read(asked), left: names() !== before });
}"""


def verbs(kind):
    """What to call, and with which arguments; a run is put in where it says so."""
    attention = "cross_attention" if kind == "Transformer" else "attention"
    return [
        ("knockOut", {"queries": [1, 2], "keys": [0, 1, 2], "heads": [0, 3], "layers": 0}),
        ("knockOut", {"place": attention, "queries": 3, "layers": 1}),
        ("ablate", {"place": attention, "heads": 2, "layers": 1}),
        ("ablate", {"place": "feed_forward", "layers": 0, "positions": 2, "run": True}),
        (
            "patch",
            {"place": attention, "heads": [0, 1], "layers": 0, "positions": [0, 3], "run": True},
        ),
        ("patch", {"place": "residual", "layers": 1, "positions": 1, "run": True}),
    ]


@torch.no_grad()
def by_pytorch(kind, model):
    def read(question):
        source, target = (torch.tensor([ids]) for ids in question)
        return (
            model(source, torch.tensor([5]), target) if kind == "Transformer" else model(target)
        )[0]

    with record_activations(model) as run:
        read(OTHER)
    with intervene(model) as acts:
        for verb, what in verbs(kind):
            if "run" in what:
                what["run"] = run
                what |= {"by": "mean"} if verb == "ablate" else {}
            getattr(acts, verb.replace("O", "_o"))(**what)
        return read(ASKED)


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("Transformer", [4]),
        ("Transformer", [1, 1, 1, 1]),
        ("GPT", [4]),
        ("GPT", [3, 1]),
        ("BERT", [4]),
    ],
)
def test_the_pages_verbs_change_what_pytorchs_change_and_end(kind, parts):
    torch.manual_seed(0)
    model = MODELS[kind]().double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    tensors = {name: tensor.tolist() for name, tensor in model.state_dict().items()}
    config = SHAPE | (LATER if kind == "GPT" else {"activation": "relu"})
    cut = [
        (source, [part.tolist() for part in torch.tensor(target).split(parts)])
        for source, target in (ASKED, OTHER)
    ]
    page = engine(["engine.js", "others.js", "interventions.js"])
    page.eval(f"globalThis.run = {RUN}")
    found = json.loads(page.call("run", kind, config, tensors, verbs(kind), *cut))
    torch.testing.assert_close(
        torch.tensor(found["logits"], dtype=torch.float64),
        by_pytorch(kind, model),
        atol=1e-5,
        rtol=1e-5,
    )
    assert found["after"] == found["whole"] != found["logits"]
    assert not found["left"]
