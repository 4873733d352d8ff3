"""What live widgets compute is what PyTorch computes."""

import itertools
import math

import pytest
import torch
from scripts import CLOSE, apart, ask, load
from stored_models import network, words
from torch.nn import functional as F

import course_utils as cu
from course_utils.data.images import load_fashion_mnist, scaled
from course_utils.data.prose import story_text
from course_utils.data.text import BOS, EOS
from course_utils.interventions import intervene
from course_utils.kit.live.widgets import ANIMALS, DRAWERS, QUERIES
from course_utils.lessons.attention_between_pixels import far_colors
from course_utils.lessons.bahdanau_attention.alignment import links_of
from course_utils.lessons.gpt.ngrams import kneser_ney_losses
from course_utils.lessons.queries_keys_values import walks
from course_utils.lessons.sequence_to_sequence.small_world import larger_world
from course_utils.lessons.vision_transformers.analysis import attention_rollout
from course_utils.pooling import kernel_weights, leave_one_out_error

# Look-ups and kernels ---------------------------------------------------------------------------


WEIGH = {
    "softmax": lambda scores: scores.softmax(0),
    "nearest": lambda scores: F.one_hot(scores.argmax(), len(scores)).double(),
    "top two": lambda scores: F.one_hot(scores.topk(2).indices, len(scores)).double().mean(0),
    "average": lambda scores: torch.full_like(scores, 1 / len(scores)).detach(),
}
FIND = """(...given) => {
    const { scores, weights, answer, slope } = find(...given);
    return [scores, weights, [answer], slope];
}"""


def test_a_look_ups_scores_weights_answer_and_slope():
    load("look_up")
    torch.manual_seed(0)
    for (kind, weigh), temperature in itertools.product(WEIGH.items(), (1e-3, 0.1, 0.7, 7.0)):
        rows, query = torch.randn(6, 3).double(), torch.randn(2).double().requires_grad_()
        scores = -(query - rows[:, :2]).square().sum(1) / 2
        weights = weigh(scores / temperature)
        answer = weights @ rows[:, 2:]
        (slope,) = torch.autograd.grad(
            answer + 0 * query.sum(), query
        )  # hard ones have no way back
        found = ask(FIND, query.tolist(), rows.tolist(), temperature, kind)
        assert apart(found, (scores, weights, answer, slope)) < CLOSE


def test_the_walk_of_the_widget_is_the_one_that_the_check_of_your_own_table_takes():
    load("look_up")
    rows = torch.tensor(list(ANIMALS.values()), dtype=torch.float64)
    query = torch.tensor(QUERIES["kitten"], dtype=torch.float64)
    ends = [[-0.2, 1.1], [-0.2, 1.1]]
    for temperature in (0.001, 0.02, 0.1, 2.0):
        places, _ = walks.walk(rows[:, :2], rows[:, 2], query, temperature, 20.0)
        walked = "(...given) => stepsTo(...given)"
        found = ask(walked, query.tolist(), rows.tolist(), temperature, "softmax", 20, ends)
        assert apart(found, torch.stack(places)) < CLOSE


POOL = """cases => cases.map(({ queries, points, kernel, width }) => {
    const keys = points.map(([x]) => x);
    return {
        weights: queries.map(query => weights(query, keys, kernel, width)),
        averages: queries.map(query => average(query, points, kernel, width)),
        ...leaveOneOut(points, kernel, width),
    };
})"""


def pooled() -> list[tuple[dict, dict]]:
    """What a page is asked, and what PyTorch answers."""
    made, kernels = [], ("gaussian", "boxcar", "triangular", "epanechnikov")
    for kernel, width in itertools.product(kernels, (0.002, 0.02, 0.3, 1.1, 8.0)):
        points, queries = torch.rand(12, 2).double() * 5, torch.rand(4).double() * 5
        x, y = points.T
        log = torch.tensor(width, dtype=torch.float64).log().requires_grad_()
        error = leave_one_out_error(x, y, kernel=kernel, width=log.exp())
        has_slope = error.isfinite() and error.requires_grad
        slope = torch.autograd.grad(error, log)[0] if has_slope else 0.0
        weights = kernel_weights(queries, x, kernel=kernel, width=width)
        asked = {"queries": queries.tolist(), "points": points.tolist()}
        answer = {"weights": weights, "averages": weights @ y, "error": error, "slope": slope}
        made.append((asked | {"kernel": kernel, "width": width}, answer))
    return made


def test_a_kernels_weights_averages_errors_and_slopes():
    load("kernel_regression")
    asked, answers = zip(*pooled(), strict=True)
    assert apart(ask(POOL, asked), answers) < CLOSE


# Heads ------------------------------------------------------------------------------------------


def head_weights(request: str, num_heads: int, sharpness: float) -> torch.Tensor:
    """Of the further page's layer, for any number of heads: each compares a block of 8 features with the label."""
    layer = cu.MultiHeadAttention(8 * num_heads, num_heads).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        layer.query_proj.weight.copy_(sharpness * torch.eye(8 * num_heads))
        layer.key_proj.weight[:, :8] = torch.eye(8).repeat(num_heads, 1)
    query = torch.zeros(num_heads, 8).double()
    for place, letter in enumerate(request):
        query[place % num_heads, DRAWERS.index(letter)] = 1
    keys = torch.eye(8, 8 * num_heads).double()[None]
    with cu.record_attention(layer) as maps:
        layer(query.view(1, 1, -1), keys, keys)
    return next(iter(maps.values()))[0, :, 0]


def shares_of(request: str, num_heads: int, sharpness: float) -> tuple[list[float], float]:
    """Over all 256 fillings: how often each answer is right, and how often all are.

    Of r look-ups that share a head, number t is white if more than t of them are.
    """
    balls = torch.cartesian_prod(*[torch.tensor([1.0, -1.0])] * 8).double()
    numbers = balls @ head_weights(request, num_heads, sharpness).T
    right = []
    for place, letter in enumerate(request):
        head, shared = place % num_heads, len(range(place % num_heads, len(request), num_heads))
        white = numbers[:, head] > (2 * (place // num_heads) + 1 - shared) / shared
        right.append(white == (balls[:, DRAWERS.index(letter)] > 0))
    every = torch.stack(right).double()
    return every.mean(dim=1).tolist(), every.prod(dim=0).mean().item()


SHARES = """(request, heads, sharpness) => {
    const asked = [...request], { each, every } = sharesOf(asked, heads, sharpness);
    const most = mostRight(asked.length, heads);
    return [weightsOf(asked, heads, sharpness), each, every, most];
}"""


def cabinets() -> list[tuple]:
    """What a page is asked, and what PyTorch and counting answer."""
    made = []
    for request, heads in itertools.product(("C", "CF", "GAB", "HDCA"), (1, 2, 3, 4)):
        k = len(request)
        # No linear readout of so many numbers is right about all k in a larger share of the cases.
        most = sum(math.comb(k, i) for i in range(min(k, heads) + 1)) / 2**k
        for sharpness in (4.0, 30.0):
            asked = request, heads, sharpness
            each, every = shares_of(*asked)
            made.append((asked, (head_weights(*asked), each, every, most)))
            assert every <= most
        assert (every == 1) == (heads >= k)
    return made


def test_weights_of_heads_and_shares_of_right_answers():
    load("heads")
    assert max(apart(ask(SHARES, *asked), right) for asked, right in cabinets()) < CLOSE


def attention(X: torch.Tensor, W: dict) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and answers of the last word, by PyTorch's own operator."""
    queries, keys, values = X[:, -1:] @ W["Q"], X @ W["K"], X @ W["V"]
    names = torch.eye(X.shape[-2], dtype=X.dtype).expand(*X.shape[:-1], -1)
    weights, Z = (F.scaled_dot_product_attention(queries, keys, v) for v in (names, values))
    return weights, Z


WORDS = ["cat", "mouse", "lemon", "apple", "desk", "table", "hungry", "ripe", "varnished"]


def sentences() -> tuple[torch.Tensor, torch.Tensor]:
    """All 24: ids of three nouns and an adjective, (24, 4); and whether its noun is feminine, (24,)."""
    every = list(itertools.product(range(3), *[range(2)] * 3))
    ids = [[a, 2 + b, 4 + c, 6 + adjective] for adjective, c, b, a in every]
    right = [(a, b, c)[adjective] for adjective, c, b, a in every]
    return torch.tensor(ids), torch.tensor(right).double()


def trained(rate: float, seed: int, steps: int) -> dict:
    """After so many steps of PyTorch's SGD from the page's first matrices: W, loss, hits and the weights, (24, 4)."""
    drawn = ask("seed => untrained(seed)", seed)
    W = {name: torch.tensor(m, dtype=torch.float64).requires_grad_() for name, m in drawn.items()}
    ids, right = sentences()
    X = F.one_hot(ids, len(WORDS)).double()
    optimizer = torch.optim.SGD(W.values(), lr=rate)
    for step in range(steps + 1):
        weights, Z = attention(X, W)
        loss = F.binary_cross_entropy_with_logits(Z[:, 0, 0], right)
        if step < steps:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    hits = ((Z[:, 0, 0] > 0) == (right > 0)).sum().item()
    return {
        "W": {n: m.detach() for n, m in W.items()},
        "loss": loss.item(),
        "hits": hits,
        "weights": weights[:, 0],
    }


TRAIN = "(rate, seed, step) => new Training(rate, seed).at(step)"


@pytest.fixture
def head():
    load("learned_head")


def test_a_heads_training_is_that_of_sgd_on_all_sentences(head):
    found = ask("() => SENTENCES")
    assert [[word.index(1) for word in each["X"]] for each in found] == sentences()[0].tolist()
    assert [each["right"] for each in found] == sentences()[1].tolist()
    runs = [(1, 0, 90), (3, 7, 40), (0.3, 2, 60)]
    right = [{n: trained(*run)[n] for n in ("W", "loss", "hits")} for run in runs]
    assert apart([ask(TRAIN, *run) for run in runs], right) < CLOSE


def test_seed_0_learns_what_the_further_page_of_scoring_functions_says(head):
    first, early, late = (trained(1, 0, steps) for steps in (0, 50, 300))
    assert (round(early["loss"], 3), early["hits"]) == (0.606, 19)
    shown = early["weights"][[2, 10, 18]]  # cat, apple, desk
    assert (shown.min().item(), shown.max().item()) == pytest.approx((0.2, 0.31), abs=0.005)
    places = [WORDS.index(word) for word in ("apple", "desk")]
    values = [round(each["W"]["V"][i].item(), 2) for i in places for each in (first, early)]
    assert values == [-0.41, 0.62, -0.07, -0.99]
    assert trained(1, 0, 83)["loss"] >= 0.4965 > trained(1, 0, 84)["loss"]
    hits = [trained(*each)["hits"] for each in ((1, 0, 130), (3, 0, 44), (0.3, 0, 300))]
    assert max(hits) < 24
    assert {trained(*each)["hits"] for each in ((1, 0, 131), (1, 0, 300), (3, 0, 45))} == {24}
    assert torch.equal(late["W"]["Q"][:6], first["W"]["Q"][:6])
    assert not torch.isclose(late["W"]["Q"][6:], first["W"]["Q"][6:]).any()
    found = [round(late["weights"][i, j].item(), 2) for i, j in ((10, 1), (18, 2), (2, 0), (3, 0))]
    assert found == [0.95, 0.99, 0.03, 0.97]
    assert late["W"]["V"][WORDS.index("hungry")] < -3


# A GPT that learns ------------------------------------------------------------------------------


@pytest.fixture
def training():
    load("character_gpt")
    ask("() => { globalThis.Training = learning(erf).Training; return 0; }")


@pytest.mark.parametrize(
    ("sizes", "rate", "seed"),
    [({}, 0.003, 0), ({"embedDim": 24, "numHeads": 2, "numLayers": 3, "maxLen": 7}, 0.01, 5)],
)
def test_twenty_steps_are_those_of_pytorch_from_the_same_seed(training, sizes, rate, seed):
    made = {"rate": rate, "seed": seed, "sizes": sizes}
    ask(
        "(text, made) => { globalThis.mine = new Training(text, made); return 0; }",
        story_text(),
        made,
    )
    begun, letters, *shape, length = ask(
        "() => [mine.model.p, mine.letters.length, mine.embedDim, mine.numHeads, mine.numLayers, mine.maxLen]"
    )
    names = ("embed_dim", "num_heads", "num_layers")
    model = cu.GPT(letters, **dict(zip(names, shape, strict=True)), max_len=length, dropout=0.0)
    state = {}
    for name, own in model.state_dict().items():
        if name != "output.weight":
            drawn = torch.tensor(begun[name]["data"]).reshape(begun[name]["rows"], -1)
            state[name] = drawn[: len(own)] if own.ndim == 2 else drawn[0]
    model.load_state_dict(state, strict=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for step in range(20):
        ids, targets = ask("() => (mine.drawn = mine.draw())")
        batch, following = (torch.tensor(each).reshape(-1, length) for each in (ids, targets))
        loss = F.cross_entropy(model(batch).flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        said = ask("""() => {
            const loss = mine.model.loss(...mine.drawn, mine.maxLen, { back: true });
            mine.optimizer.step();
            return loss;
        }""")
        assert said == pytest.approx(loss.item(), abs=CLOSE), f"step {step}"


@pytest.mark.parametrize("text", [story_text(), "to be or not to be " * 40, "ab" * 300])
def test_counting_is_that_of_kneser_and_ney(training, text):
    letters = sorted(set(text))
    ids = [letters.index(letter) for letter in text]
    cut = math.ceil(0.9 * len(ids))
    losses = kneser_ney_losses(ids[:cut], ids[cut:], 7, len(letters))
    found = ask("text => new Training(text).counted()", text)
    assert found["loss"] == pytest.approx(min(losses))
    assert losses[found["letters"]] == pytest.approx(min(losses))


@torch.no_grad()
def test_it_goes_on_from_a_beginning_with_the_letters_that_are_likeliest_for_pytorch(training):
    text, sizes = story_text(), {"embedDim": 16, "numHeads": 2, "numLayers": 1, "maxLen": 7}
    begun, letters = ask(
        """(text, sizes) => {
            globalThis.mine = new Training(text, { rate: 0.01, sizes });
            for (let step = 0; step < 30; step += 1) mine.step();
            return [mine.model.p, mine.letters];
        }""",
        text, sizes,
    )  # fmt: skip
    model = cu.GPT(
        len(letters), embed_dim=16, num_heads=2, num_layers=1, max_len=7, dropout=0.0
    ).eval()
    state = {}
    for name, own in model.state_dict().items():
        stored = torch.tensor(begun[name.replace("output", "embedding")]["data"])
        state[name] = stored[: own.numel()].view_as(own)
    model.load_state_dict(state)
    ids = [letters.index(letter) for letter in "The old"]
    for _ in range(20):
        ids.append(int(model(torch.tensor([ids[-7:]]))[0, -1].argmax()))
    write = "(beginning, temperature, seed) => mine.write(20, { beginning, temperature, seed })"
    assert ask(write, "The →old", 0, 1) == "".join(letters[i] for i in ids)
    first, again, other = (ask(write, "The old", 1, seed) for seed in (1, 1, 2))
    assert first == again != other and first.startswith("The old") and len(first) == 27


# The vision transformer -------------------------------------------------------------------------

LOOK = """(name, pictures) => {
    const model = new ViT(live_bundles[name]);
    return pictures.map(pixels => look(model, pixels));
}"""


@torch.no_grad()
def look(name: str, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
    """Probabilities, the weights of the class token on the patches, and the rollout, of a picture (28, 28)."""
    model = network(name)
    with cu.record_attention(model) as recorded:
        logits = model(scaled(pixels[None, None]))[0]
    layers = list(recorded.values())
    heads = torch.stack([layer[0, :, 0, 1:].unflatten(1, model.grid) for layer in layers])
    rollout = attention_rollout(layers)[0, 0, 1:].unflatten(0, model.grid)
    maps = torch.cat([heads, heads.mean(dim=1, keepdim=True)], dim=1)
    return {"p": logits.softmax(dim=0), "maps": maps, "rollout": rollout}


def test_a_pictures_probabilities_maps_and_rollout():
    load("vit")
    pictures = load_fashion_mnist("test").images[:3, 0]

    for name in ("vit", "vit_patch14", "vit_patch4"):
        right = [look(name, picture) for picture in pictures]
        assert apart(ask(LOOK, name, pictures.flatten(1).tolist()), right) < CLOSE


# Translators ------------------------------------------------------------------------------------

ALIGN = """cases => {
    const models = {};
    return cases.map(([kind, source, given]) => {
        const bundle = live_bundles[kind === "Transformer" ? "translator_fr" : "bahdanau_fr"];
        models[kind] ??= new (inside(kind))(bundle);
        const { own, says, maps } = looked(models[kind], source, bundle.vocabularies.target, given);
        return { own, says, maps };
    });
}"""
HITS = "cases => cases.map(([map, links]) => hitsOf(map, placesOf(links)))"


def aligned() -> tuple[list, list]:
    """Test sentences, with each model's French and the corpus's: what the page is asked, and the answer."""
    asked, answers, english, french = [], [], words("source"), words("target")
    for pair in larger_world().test[:6]:
        for kind, name in {
            "AttentionTranslator": "bahdanau_fr",
            "Transformer": "translator_fr",
        }.items():
            source = [*english.encode(pair.source), EOS]
            ids, lens = torch.tensor([source]), torch.tensor([len(source)])
            own = french.decode(cu.greedy(network(name), ids, lens)[0])
            for given in (None, list(pair.target)):
                says = given or own
                with cu.record_attention(network(name)) as maps:
                    network(name)(ids, lens, torch.tensor([[BOS, *french.encode(says)]]))
                looks = [w for name, w in maps.items() if "cross" in name or name == "attention"]
                looks = torch.stack([w.reshape(-1, *w.shape[-2:]) for w in looks])
                asked.append((kind, source, given))
                answers.append((own, [*says, "<eos>"], looks))
    return asked, answers


def hits() -> tuple[list, list]:
    """Random maps with gold links, and how many words look at one by the course's own rule."""
    asked, answers = [], []
    for pair in larger_world().test[:40]:
        weights = torch.rand(len(pair.target) + 1, len(pair.source) + 1).softmax(dim=1)
        links = " ".join(f"{s}-{t}" for s, t in sorted(pair.alignment))
        asked.append((weights.tolist(), links))
        answers.append(len(links_of(weights[:-1, :-1]) & pair.alignment))
    return asked, answers


def test_alignments_answers_maps_and_hits():
    load("alignment")
    (asked, answers), (maps, counts) = aligned(), hits()
    found = ask(ALIGN, asked)
    assert [(each["own"], each["says"]) for each in found] == [each[:2] for each in answers]
    assert apart([each["maps"] for each in found], [looks for *_, looks in answers]) < CLOSE
    assert ask(HITS, maps) == counts


FORBID = """cases => {
    const model = new Transformer(live_bundles.translator_fr);
    return cases.map(({ source, words, looks, deeper, watched }) => {
        const places = source.map((_, i) => ({ places: [i] }));
        forbid(model, places, { words, looks }, deeper);
        const said = greedy(model, source, 12), state = model.start(source);
        const logits = model.step([BOS, ...said], state).map(row => watched.map(id => row[id]));
        return { said, logits };
    });
}"""


def forbidding(at: torch.Generator) -> dict:
    """A sentence of random words and what may not be looked at: at least one look stays at each step."""

    def some(count: int, most: int) -> list[int]:
        many = int(torch.randint(0, most + 1, (1,), generator=at))
        return sorted(torch.randperm(count, generator=at)[:many].tolist())

    length = int(torch.randint(2, 9, (1,), generator=at))
    out = some(length + 1, length)
    rest = [j for j in range(length + 1) if j not in out]
    return {
        "source": [*torch.randint(1, 800, (length,), generator=at).tolist(), EOS],
        "words": out,
        "looks": [[i, rest[j]] for i in range(4) for j in some(len(rest), len(rest) - 1)],
        "deeper": bool(torch.randint(0, 2, (1,), generator=at)),
        "watched": torch.randint(0, 800, (40,), generator=at).tolist(),
    }


@torch.no_grad()
def test_forbidden_looks_are_those_of_pytorch_in_200_sentences():
    at, model = torch.Generator().manual_seed(0), network("translator_fr")
    cases = [forbidding(at) for _ in range(200)]
    load("translator")
    free = 0.0  # how far the logits are from those without a ban
    for case, found in zip(cases, ask(FORBID, cases), strict=True):
        source, said = torch.tensor([case["source"]]), found["said"]
        given = source, torch.tensor([source.shape[1]]), torch.tensor([[BOS, *said]])
        with intervene(model) as acts:
            if case["words"]:
                acts.forbid("cross_attention", keys=case["words"])
            if case["words"] and case["deeper"]:
                acts.forbid("encoder.attention", keys=case["words"])
            for query, key in case["looks"]:
                if query <= len(said):
                    acts.forbid("cross_attention", queries=query, keys=key)
            right = model(*given)[0]
        assert apart(found["logits"], right[:, case["watched"]]) < CLOSE
        free += float((model(*given)[0] - right).abs().max()) / len(cases)
    assert free > 1
    for forbid, line, out, looks in (
        ("4,1", "0.2", [4, 1], [[0, 2]]),
        ("0,1,2,3,4,5", "", [0, 1, 2, 3, 4], []),
        ("x,-1,9,1.5,2,2", "0,a.b,0.9,1.2", [2], []),
        ("0,1,2", "0.3,0.4,0.5,1.5", [0, 1, 2], [[0, 3], [0, 4], [1, 5]]),
    ):  # what an address forbids leaves a look at every step
        left = ask("(...given) => forbiddenLooks(...given)", forbid, line, 6)
        assert left == {"words": out, "looks": looks}


# Colors of symbols --------------------------------------------------------------------------------


def test_the_best_share_of_counting_is_the_exact_one():
    load("colors")
    for symbols in (2, 4, 8):
        best = ask("(symbols) => VIEWS.counts[1](symbols)", symbols)
        assert best == pytest.approx(far_colors.counting(symbols), abs=1e-4)


@pytest.mark.parametrize("symbols", [2, 4, 8])
def test_partners_are_far_apart_on_pixels_of_their_own_and_recoloring_changes_one_pair(symbols):
    pictures = far_colors.far_pictures(50, 0, symbols)
    dots, holes = pictures.places.view(50, 2, symbols, 1).unbind(1)
    rows, columns = (dots // 8 - holes // 8).abs(), (dots % 8 - holes % 8).abs()
    assert torch.maximum(rows, columns).min() == 4
    assert all(len(set(each)) == 2 * symbols for each in pictures.places.tolist())
    other = far_colors.recolored(pictures, 1)
    changed = (other.inputs != pictures.inputs).any(dim=1).flatten(1)
    assert torch.equal(changed.nonzero()[:, 1], pictures.places[:, 1])
    answers = (other.answers != pictures.answers).flatten(1)
    assert torch.equal(answers.nonzero()[:, 1], pictures.places[:, symbols + 1])
