"""What *What heads learn* asks of SmolLM2: on a small random model of the same class, and as it was recorded."""

from types import SimpleNamespace

import pytest
import torch

import course_utils as cu
from course_utils.lessons.real_weights import experiments, heads
from course_utils.lessons.real_weights.smollm import VOCAB, SmolLM


class Words:
    """A tokenizer whose tokens are the words of a text."""

    def encode(self, text):
        return SimpleNamespace(ids=[17 + sum(map(ord, word)) % 5000 for word in text.split()])


@pytest.fixture(scope="module")
def lm():
    """Thirty layers of nine heads, as in SmolLM2, with two features a head and random weights."""
    cu.seed_everything(0)
    model = cu.GPT(
        VOCAB, embed_dim=18, num_heads=9, num_kv_heads=3, num_layers=30, ffn_dim=16,
        activation="swiglu", norm="rms", rotary=True, bias=False, dropout=0.0,
    )  # fmt: skip
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" not in name:
                p.copy_(torch.randn_like(p) * 0.4)
    return SmolLM(model.eval().requires_grad_(False), Words())


@pytest.fixture(autouse=True)
def _reading_only():
    with torch.inference_mode():
        yield


def test_a_block_comes_again_behind_the_gap():
    texts = heads.twice(5, texts=3, gap=4)
    assert texts.shape == (3, 15) and not texts[:, 0].any()
    assert torch.equal(texts[:, 1:6], texts[:, 10:])
    assert not torch.equal(texts[:, 1:5], texts[:, 6:10])


def test_four_texts_are_those_of_real_weights():
    assert torch.equal(heads.twice(40), experiments.repeated(seed=9)[:, 0])


def test_ids_are_of_the_kind(lm):
    ids = heads.twice(40, tokens="frequent")[:, 1:]
    assert ids.min() >= 300 and ids.max() < 3000


def test_without_heads_nothing_is_left_of_attention(lm):
    """All heads ablated: what is in front of a token changes nothing."""
    texts = heads.twice(6)
    everything = [[layer, head] for layer in range(30) for head in range(9)]
    with heads.ablated(lm, everything):
        losses, right = heads.read(lm, texts, rows=2)
    assert losses.shape == right.shape == (4, 12)
    assert torch.allclose(
        losses[:, 1:6], losses[:, 7:], atol=1e-4
    )  # the same token, the same guess
    first, _, copied, least, most = heads.copying_without(lm, [], block=6)
    assert first != pytest.approx(losses[:, 1:6].mean().item()) and least <= copied <= most


def test_sizes_are_those_of_what_a_head_adds(lm):
    """Taking a head out changes the attention's output by as much as its size says."""
    with cu.record_attention(lm.model):
        sizes = heads.size_of_heads(lm)
    texts = heads.twice(40)[:, :-1]
    with heads.record_activations(lm.model) as run:
        lm.model(texts)
    with heads.ablated(lm, [[3, 4]]), heads.record_activations(lm.model) as without:
        lm.model(texts)
    added = (run["layers.3.attention"] - without["layers.3.attention"])[:, 41:]
    assert sizes[3][4] == pytest.approx(added.square().sum(-1).mean().sqrt().item(), rel=1e-3)


def test_others_are_as_heavy_and_none_of_the_ten(lm):
    sizes = torch.rand(30, 9, generator=torch.Generator().manual_seed(0)).tolist()
    drawn = heads.as_heavy(sizes, heads.TEN, seed=0)
    assert len({tuple(head) for head in drawn + heads.TEN}) == 20
    for (layer, head), (k, h) in zip(heads.TEN, drawn, strict=True):
        assert abs(layer - k) <= 1 and abs(sizes[layer][head] - sizes[k][h]) < 0.35
    assert drawn == heads.as_heavy(sizes, heads.TEN, 0) != heads.as_heavy(sizes, heads.TEN, 1)


def test_best_heads_are_ranked(lm):
    best = heads.best_heads(lm, tokens="all", block=10, seed=0, count=5)
    assert [score for *_, score in best] == sorted((score for *_, score in best), reverse=True)


def test_a_first_token_that_nobody_may_see_is_a_text_without_it(lm):
    """Rotary positions count distances only, so the text that is left begins one token later."""
    rows = heads.twice(15)
    with heads.unseen(lm, [(0, range(30))], 30):
        hidden, _ = heads.read(lm, rows)
    cut, _ = heads.read(lm, rows[:, 1:])
    assert torch.allclose(hidden[:, 1:], cut, atol=1e-3)
    with heads.unseen(lm, [(0, range(10, 20))], 30):
        in_ten_layers, _ = heads.read(lm, rows)
    assert not torch.allclose(in_ten_layers[:, 1:], cut, atol=1e-2)


def test_sinks_has_a_loss_for_each_name_and_weights_that_are_shares(lm, monkeypatch):
    monkeypatch.setattr(heads, "prose", lambda lm, text: heads.twice(12, texts=2))
    few = {name: heads.FORBIDDEN[name] for name in ("nothing", "first, all layers")}
    monkeypatch.setattr(heads, "FORBIDDEN", few)
    gave = heads.sinks(lm)
    assert list(gave["losses"]) == [*heads.FORBIDDEN, "without the first token"]
    cut, hidden = (gave["losses"][n] for n in ("without the first token", "first, all layers"))
    assert cut == pytest.approx(hidden, abs=1e-3)
    assert len(gave["by_layer"]) == 30 and all(0 <= w <= 1 for w in gave["by_layer"])
    assert gave["weights"]["first, all layers"][0] == 0 < gave["weights"]["nothing"][0]
    for mean, least, most in gave["losses"].values():
        assert least <= mean - gave["losses"]["nothing"][0] + 1e-4 and least <= most


def test_words_as_heavy_as_the_sink_are_hidden(lm, monkeypatch):
    monkeypatch.setattr(heads, "prose", lambda lm, text: heads.twice(44, texts=1))
    of = heads.hidden_words(lm)
    shares = [share for share, *_ in of.values()]
    assert shares[1:] == sorted(shares[1:]) and min(shares) > 0 and max(shares) < 1
    assert of["first"][1] == of["first"][2] == of["first"][3] != 0


def test_a_patch_of_the_same_run_changes_nothing_and_one_of_x_something(lm):
    gave = heads.noted_before(lm, texts=4)
    assert gave["16.0 at the end"] != gave["16.0 at Y"]
    assert all(low <= high for _, low, high in gave.values())


def test_capitals_behind_a_word_are_counted(lm):
    gave = heads.capitals_behind(lm, "banana")
    assert gave["of"] == 30 and 0 <= gave["right"] <= 30 and 0 < gave["mean_p"] < 1
    assert heads.capitals_behind(lm, "") != gave


# What was recorded --------------------------------------------------------------------------------


def gave(name, **case):
    """What was recorded of an experiment, for one case."""
    (run,) = [run for run in cu.stored_runs("real_weights", name) if run.config == case]
    return run.examples[0]["gave"]


def test_the_ten_heads_are_those_that_were_found():
    found = gave("induction_heads")
    assert [[layer, head] for layer, head, *_ in found] == heads.TEN
    assert all(score > 0.3 for _, _, score, _ in found)


def test_what_nothing_ablated_copies_is_what_real_weights_counts():
    (run,) = cu.stored_runs("real_weights", "copying", take="best", count=0)
    assert gave("ablations", seed=9)["nothing"][2] == pytest.approx(run.result["copied"], abs=1e-3)
    assert gave("copied_over_gap", tokens="all")["0"][0] == pytest.approx(
        run.result["copied"], abs=1e-3
    )


@pytest.mark.parametrize("case", [{"seed": 9}, {"seed": 10}, {"block": 20}, {"tokens": "frequent"}])
def test_without_the_ten_nothing_is_copied_and_without_others_as_heavy_a_good_deal(case):
    of = gave("ablations", **case)
    assert of["ten"][4] == 0 and abs(of["ten"][0] - of["nothing"][0]) < 0.2
    heavy = [of[f"as heavy, {draw}"][2] for draw in (0, 2, 3)]  # the draw 1 holds 16.0
    assert min(heavy) > 0.35 and of["as heavy, 1"][2] < 0.15
    assert (
        abs(of["16.0"][1] - of["four"][1]) < 0.12 * of["four"][1] < of["eight"][1] - of["16.0"][1]
    )


@pytest.mark.parametrize("text", ["story", "news", "sentences"])
def test_the_second_token_takes_over(text):
    of = gave("sinks", text=text)
    loss = {name: mean for name, (mean, _, _) in of["losses"].items()}
    assert list(loss) == [*heads.FORBIDDEN, "without the first token"]
    assert loss["first, all layers"] == pytest.approx(loss["without the first token"], abs=1e-3)
    rise = {name: mean - loss["nothing"] for name, mean in loss.items()}
    taken_over = rise["first everywhere, second in layers 10–19"]
    assert taken_over == pytest.approx(rise["first, layers 10–19"], rel=0.05)
    assert taken_over > 0.6 > 0.15 > rise["first everywhere, fifth in layers 10–19"]
    assert of["losses"]["first, layers 10–19"][1] > 0.35 and rise["second, layers 10–19"] < 0.02
    (before, _, *_), (after, second, *_) = of["weights"].values()
    assert after == 0 and second == pytest.approx(before, abs=0.02)


@pytest.mark.parametrize("text", ["story", "sentences"])
def test_the_sink_costs_more_than_forty_other_words(text):
    of = gave("hidden_words", text=text)
    assert of["first"][1] == pytest.approx(
        gave("sinks", text=text)["losses"]["first, layers 10–19"][0]
        - gave("sinks", text=text)["losses"]["nothing"][0],
        abs=2e-3,
    )
    assert of["40 others"][1] < of["first"][1]


def test_a_front_that_nobody_sees_is_no_front():
    bare = gave("capitals_behind", front="")
    for front in ("<|endoftext|>", " banana"):
        assert gave("capitals_behind", front=front, hidden=[0]) == bare
        assert gave("capitals_behind", front=front, hidden=[1])["right"] == 0


def test_it_is_the_look_one_back_of_16_0_and_what_it_gives_at_y():
    looks = gave("look_back")
    assert (
        looks.pop("16.0, 1")[2] < 0.12 < 0.55 < min(copied for _, _, copied, _, _ in looks.values())
    )
    back = {name: share for name, (share, _, _) in gave("noted_before").items()}
    assert back.pop("difference") > 5 and back.pop("16.0 at Y") > 0.6
    assert back.pop("19.3 at Y") < 0.25 and max(map(abs, back.values())) < 0.02


def test_of_all_heads_before_layer_17_none_costs_as_much_as_16_0():
    losses = {
        (layer, head): loss
        for layer, row in enumerate(gave("each_alone"))
        for head, (loss, _) in enumerate(row)
    }
    ranked = sorted(losses, key=losses.get, reverse=True)
    assert len(ranked) == 153 and ranked[:3] == [(16, 0), (1, 3), (0, 5)]
    assert losses[ranked[0]] > 7.5 > 4 > losses[ranked[3]]
