"""What *Attention at length* asks of SmolLM2: on a small random model of the same class, and as it was recorded."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F

import course_utils as cu
from course_utils.interventions import record_activations
from course_utils.lessons.real_weights import windows
from course_utils.lessons.real_weights.smollm import VOCAB, SmolLM
from course_utils.lessons.real_weights.windows import View, in_pieces


class Words:
    """A tokenizer whose tokens are the words of a text."""

    def encode(self, text):
        return SimpleNamespace(ids=[17 + sum(map(ord, word)) % 5000 for word in text.split()])


def random_model(num_layers):
    """Three heads that share keys and values, with random weights; in float64, since they amplify rounding."""
    cu.seed_everything(0)
    model = cu.GPT(
        VOCAB, embed_dim=12, num_heads=3, num_kv_heads=1, num_layers=num_layers, ffn_dim=16,
        activation="swiglu", norm="rms", rotary=True, bias=False, dropout=0.0,
    )  # fmt: skip
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" not in name:
                p.copy_(torch.randn_like(p) * 0.5)
    return SmolLM(model.double().eval().requires_grad_(False), Words())


@pytest.fixture(scope="module")
def lm():
    return random_model(num_layers=15)


@pytest.fixture(autouse=True)
def _reading_only():
    with torch.inference_mode():
        yield


@pytest.fixture(scope="module")
def ids():
    return torch.randint(17, 5000, (1, 25), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("text", ["pages", "ferry", "orchard"])
def test_a_text_has_whole_blocks_and_stands_behind_its_front(lm, text):
    behind, alone = windows.ids_of(lm, text), windows.ids_of(lm, text, front=False)
    assert behind.shape[1] == alone.shape[1] + 1 and alone.shape[1] % windows.BLOCK == 0
    assert behind[0, 0] == 0 and torch.equal(behind[:, 1:], alone)
    assert "#" not in windows.words_of(text)


def test_a_window_holds_the_last_tokens_and_those_that_are_always_kept():
    assert windows.window(5, 2, [0]).int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 0, 1, 1, 0],
        [1, 0, 0, 1, 1],
    ]
    kept = windows.window(1536, 124, windows.VIEWS["128"]["second to fifth, last 124"].always)
    assert (kept.sum(1)[128:] == 128).all()


@pytest.mark.parametrize("group", ["128"])
def test_all_views_of_a_group_keep_as_many_from_the_248th_token_on(group):
    for name, view in windows.VIEWS[group].items():
        seen = windows.window(300, view.last, view.always).sum(1)[248:]
        assert name == "whole past" or (seen == 128).all()


def test_a_view_is_what_forbidding_the_others_gives(lm, ids):
    """The mask in every layer and the course's gesture: the same losses."""
    n, view = ids.shape[1] - 1, View(4, [0, 2])
    with cu.intervene(lm.model) as acts:
        for query in range(n):
            unseen = [key for key in range(query - 3) if key not in (0, 2)]
            if unseen:
                acts.forbid(queries=query, keys=unseen)
        logits = lm.model(ids[:, :-1])
    forbidden = F.cross_entropy(logits[0], ids[0, 1:], reduction="none")
    assert torch.allclose(view.losses(lm.model, ids), forbidden, atol=1e-4)
    assert not torch.allclose(windows.WHOLE.losses(lm.model, ids), forbidden, atol=1e-2)


@pytest.mark.parametrize("way", ["matrix", "pieces of 64", "pieces of 37"])
def test_other_ways_to_compute_attention_give_the_same(lm, way):
    ids = torch.randint(17, 5000, (2, 150), generator=torch.Generator().manual_seed(1))
    whole = lm.model(ids)
    with windows.attending(lm.model, windows.WAYS[way]):
        assert torch.allclose(lm.model(ids), whole, atol=1e-8)
    assert torch.equal(lm.model(ids), whole)


@pytest.mark.parametrize("queries", [1, 5, 23])
def test_pieces_are_the_softmax_of_all_scores_also_where_they_are_large(queries):
    draws = torch.Generator().manual_seed(2)
    q = torch.randn(2, 4, queries, 8, generator=draws, dtype=torch.float64) * 30
    k, v = torch.randn(2, 2, 2, 23, 8, generator=draws, dtype=torch.float64)
    right = windows.in_full(q, k, v, None)
    assert torch.allclose(in_pieces(5)(q, k, v, None), right, rtol=1e-12, atol=1e-12)


def test_counting_anew_changes_nothing_as_long_as_nothing_is_dropped(lm, ids):
    """A window with room for all: no distance is cut."""
    n = ids.shape[1] - 1
    whole = windows.WHOLE.losses(lm.model, ids)
    assert torch.allclose(View(n - 1, [0], recounted=True).losses(lm.model, ids), whole, atol=1e-4)


def test_counted_anew_the_first_token_is_always_as_far(lm):
    """All keys alike: a query's scores on the first token are those of the first query that stands so far from it."""
    attend = windows.recounted(lm.model, 12, first=1, last=4)
    turn = cu.positions.Rotation(12, 4, base=lm.model.rotary_base)
    draws = torch.Generator().manual_seed(3)
    q, k = (turn(torch.randn(4, generator=draws).expand(1, 1, 12, 4)) for _ in range(2))
    v = torch.zeros(1, 1, 12, 4)
    v[..., 0, :] = 1
    weight = attend(q, k, v, windows.window(12, 4, [0]))[0, 0, :, 0]
    assert torch.allclose(weight[4:], weight[4].expand(8), atol=1e-5)
    before = windows.in_full(q, k, v, windows.window(12, 4, [0]))[0, 0, :, 0]
    assert torch.allclose(weight[:5], before[:5], atol=1e-5)
    assert not torch.allclose(weight[5:], before[5:], atol=1e-3)


def test_a_screen_has_a_mean_and_blocks_for_each_view(lm, monkeypatch):
    few = {"some": {"whole": windows.WHOLE, "last 9": View(9)}}
    monkeypatch.setattr(windows, "VIEWS", few)
    gave = windows.screen(lm, "ferry", group="some", tokens=300)
    for each in gave.values():
        assert len(each["by_block"]) == 4
        assert each["mean"] == pytest.approx(sum(each["by_block"][2:]) / 2, rel=1e-4)
    by, error = windows.rise(gave["last 9"], gave["whole"], unit=1)
    assert by == pytest.approx(gave["last 9"]["mean"] - gave["whole"]["mean"], rel=1e-3)
    pair = [gave["last 9"]["by_block"][i] - gave["whole"]["by_block"][i] for i in (2, 3)]
    assert error == pytest.approx(abs(pair[0] - pair[1]) / 2, rel=1e-3)


def test_a_readers_own_window_is_a_view(lm):
    gave = windows.through(lm, last=9, always=[3], alone=[3], text="ferry", tokens=256)
    each = View(9, [3], sees={3: []}).losses(lm.model, windows.ids_of(lm, "ferry", tokens=256))
    assert gave["loss"] == pytest.approx(each[128:].mean().item())
    assert gave["loss"] != pytest.approx(gave["whole past"], rel=1e-3)


def test_without_a_front_the_same_tokens_are_asked(lm, monkeypatch):
    """A model that sees one token only doesn't know what stands in front."""
    monkeypatch.setattr(windows, "VIEWS", {"some": {"last 1": View(1)}})
    with_front, without = (
        windows.screen(lm, "ferry", group="some", tokens=256, front=front)["last 1"]
        for front in (True, False)
    )
    assert with_front["mean"] == pytest.approx(without["mean"], rel=1e-5)
    assert with_front["by_block"][1:] == pytest.approx(without["by_block"][1:], rel=1e-4)


def test_weights_on_the_first_token_are_those_that_are_recorded(lm, monkeypatch):
    behind = windows.ids_of(lm, "ferry", tokens=192)
    monkeypatch.setattr(windows, "ids_of", lambda lm, text: behind)
    ids = behind[:, :-1]
    with cu.record_attention(lm.model) as maps:
        lm.model(ids)
    right = torch.stack([m[0].mean(0) for m in maps.values()])
    gave = windows.weight_on_first(lm, "ferry")
    assert gave["by_layer"] == pytest.approx(right[:, 128:, 0].mean(1).tolist(), abs=1e-5)
    assert gave["second, by_layer"] == pytest.approx(right[:, 128:, 1].mean(1).tolist(), abs=1e-5)
    by_block = right[12:, :, 0].mean(0).view(-1, 64).mean(1).tolist()
    assert gave["by_block"] == pytest.approx(by_block, abs=1e-5)


def test_a_cache_that_throws_the_oldest_away_is_the_window(lm):
    gave = windows.evicted(lm, tokens=64, last=10)
    assert [each["kept"] for each in gave.values()] == [64, 10, 11]
    for each in gave.values():
        assert float(each["in float64"]) < 1e-8


def test_writing_costs_the_cache_that_the_sizes_say(lm):
    gave = windows.writing(lm, after=64)
    sizes = windows.Config(layers=15, heads=3, kv_heads=1, head_dim=4)
    assert gave["bytes a token"] == sizes.cache_bytes(1, bytes_each=4)
    assert all(each > 0 for each in gave.values())


def test_a_cache_in_bytes():
    small = windows.CONFIGS["SmolLM2 135M"]
    assert small.cache_bytes(1, bytes_each=4) == 46_080
    assert small.cache_bytes(1, bytes_each=4, kv_heads=9) == 138_240
    assert small.cache_bytes(1, bytes_each=4, kv_heads=1) == 15_360
    bytes_of = {name: config.cache_bytes(100_000) for name, config in windows.CONFIGS.items()}
    assert bytes_of["Llama 2 7B"] == 4 * bytes_of["Llama 3.1 8B"] == 52_428_800_000
    assert bytes_of["Mistral 7B"] == 4096 * 131_072 and bytes_of["Falcon 7B"] == 819_200_000
    assert math.isclose(bytes_of["SmolLM2 135M"], 2.304e9)


def test_a_token_that_sees_nobody_is_a_text_of_its_own(lm, ids):
    """It gives what the first token of a text gives, since rotary positions count distances only."""
    places = []
    for text, view in ((ids, View(30, sees={7: []})), (ids[:, 7:], View(30))):
        with record_activations(lm.model) as run:
            view.losses(lm.model, text)
        places.append(run["layers.14.residual"][0, 7 if text is ids else 0])
    assert torch.allclose(*places, atol=1e-8)
    seen = View(30, sees={7: [6]}).mask(9)[7].tolist()
    assert seen == [False] * 6 + [True, True, False]


# What was recorded --------------------------------------------------------------------------------


def gave(name, **case):
    """What was recorded of an experiment, for one case."""
    (run,) = [run for run in cu.stored_runs("real_weights", name) if run.config == case]
    return run.examples[0]["gave"]


def means(text, *groups):
    """View → its recorded mean."""
    views = {}
    for group in groups:
        views |= gave("screen", text=text, group=group)
    return {name: each["mean"] for name, each in views.items()}


@pytest.mark.parametrize("text", windows.TEXTS)
def test_the_first_token_gives_back_most_of_what_a_window_costs_and_no_other_does(text):
    of = means(text, "128")
    cost = of["last 128"] - of["whole past"]
    back = of["last 128"] - of["first 1, last 127"]
    assert cost > 0.6 and back > 0.55 * cost
    assert of["first 4, last 124"] == pytest.approx(of["first 1, last 127"], abs=0.05)
    draws = [of[f"4 others, last 124, draw {draw}"] for draw in range(4)]
    assert max(abs(loss - of["last 128"]) for loss in draws) < 0.05
    assert of["second, last 127"] > of["last 128"]


@pytest.mark.parametrize("text", windows.TEXTS)
@pytest.mark.parametrize("place", [40, 90])
def test_a_token_that_sees_nobody_is_as_good_as_the_first(text, place):
    of = means(text, "128", "alone", "with one other")
    kept, alone = of[f"{place}th, last 127"], of[f"{place}th alone, last 127"]
    assert alone == pytest.approx(of["first 1, last 127"], abs=0.02)
    assert kept == pytest.approx(of["last 128"], abs=0.05)
    with_neighbor = of[f"{place}th with the {place - 1}th, last 127"]
    if (text, place) == ("orchard", 90):  # the one exception of ten: "nobody" may see "which"
        assert with_neighbor == pytest.approx(alone, abs=0.02)
    else:
        assert with_neighbor == pytest.approx(of["last 128"], abs=0.05)


@pytest.mark.parametrize("text", windows.TEXTS)
def test_thirty_two_tokens_beat_a_hundred_and_twenty_eight(text):
    screen = gave("screen", text=text, group="sizes") | gave("screen", text=text, group="128")
    for small in ("first 4, last 28", "first 1, last 31"):
        by, error = windows.rise(screen[small], screen["last 128"])
        assert by < -2 * error
    sizes = [screen[f"first 1, last {n}"]["mean"] for n in (15, 31, 63, 127, 255)]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("text", windows.TEXTS)
def test_what_stands_first_is_looked_at_to_the_end_of_the_text(text):
    of = gave("weight_on_first", text=text)
    assert min(of["by_layer"][12:]) > 0.15 and max(of["by_block"]) < 2 * min(of["by_block"])
    assert max(of["second, by_layer"]) < 0.05


@pytest.mark.parametrize("text", ["pages", "ferry"])
def test_a_token_that_sees_only_itself_gets_the_weight_of_the_first(text):
    of = gave("weight_on_kept", text=text)
    first = of["first 1, last 127"]
    for place in ("40th", "90th"):
        assert of[f"{place} alone, last 127"] > 0.8 * first > 10 * of[f"{place}, last 127"]


@pytest.mark.parametrize("text", ["pages", "ferry"])
def test_it_is_the_place_and_not_the_token(text):
    of = gave("screen", text=text, group="128", front=False)
    cost = of["last 128"]["mean"] - of["whole past"]["mean"]
    assert of["last 128"]["mean"] - of["first 1, last 127"]["mean"] > 0.55 * cost > 0.3


def test_what_is_thrown_away_is_what_the_mask_forbids():
    for each in gave("evicted").values():
        assert float(each["in float64"]) < 1e-11


def test_in_pieces_the_logits_are_the_same():
    for way, of in gave("logits_in_pieces").items():
        assert way == "operator" or (float(of["difference"]) < 1e-4 and of["same best"] == 1)


def test_writing_on_the_cache_is_much_faster_and_eight_texts_cost_less_than_eight_times_one():
    (run,) = cu.stored_runs("real_weights", "writing")
    of = run.result
    assert of["bytes a token"] == 46_080 and of["weights, MB"] == pytest.approx(538.06)
    assert of["written without"] > 10 * of["written"] and of["written, 8 texts"] < 5 * of["written"]
