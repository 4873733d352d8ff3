# ruff: noqa: E501
"""Language models: who sees whom, the cache, objectives, subwords, sampling, and what is refused."""

import copy
import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from course_utils import positions
from course_utils.data.prose import (
    IGNORE,
    WORD_END,
    Subwords,
    TextLoader,
    cut_windows,
    load_english,
    load_story,
    masked_token,
    next_token,
)
from course_utils.data.text import BOS, EOS, MASK, PAD, pad
from course_utils.decoding import next_token_probs, sample
from course_utils.lessons.bert_and_transfer.trigrams import Trigrams
from course_utils.lessons.real_weights.smollm import Block
from course_utils.models.language import BERT, GPT, SentenceClassifier
from course_utils.train.losses import language_model_loss

SIZE = 23
SMALL = {"embed_dim": 16, "num_heads": 4, "num_layers": 2, "max_len": 12}
SWAPS = [
    {"norm": norm, "rotary": rotary, "activation": activation, "num_kv_heads": kv}
    for norm, rotary, activation, kv in itertools.product(
        ("layer", "rms"), (False, True), ("gelu", "swiglu"), (None, 2, 1)
    )
]
every_swap = pytest.mark.parametrize("swap", SWAPS, ids=lambda s: "-".join(map(str, s.values())))


def make(kind=GPT, **options):
    torch.manual_seed(0)
    return kind(SIZE, **{**SMALL, "dropout": 0.0, **options})


def some_ids(rows=3, length=9):
    return torch.randint(MASK + 1, SIZE, (rows, length), generator=torch.Generator().manual_seed(1))


def corpus():
    return ["low lower lowest", "new newer newest", "the lowest is not the newest ."] * 3


# Models -----------------------------------------------------------------------------------------


@every_swap
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_later_tokens_change_no_earlier_logits_of_a_gpt(swap, training):
    model = make(**swap).train(training)
    ids = some_ids()
    changed = ids.clone()
    changed[:, 5] = MASK
    before, after = model(ids), model(changed)
    assert torch.equal(before[:, :5], after[:, :5])
    assert (before[:, 5] != after[:, 5]).any(dim=-1).all()


def test_rotary_angles_are_computed_once_a_forward_pass(monkeypatch):
    usual, made = positions._angles, []
    monkeypatch.setattr(positions, "_angles", lambda *args: made.append(1) or usual(*args))
    model = make(rotary=True, num_layers=3).eval()
    expected = model(some_ids())
    assert len(made) == 1
    x = model.embedding(some_ids())
    for layer in model.layers:  # one by one, each makes its own
        x = layer(x, is_causal=True)
    assert torch.equal(model.output(model.norm(x)), expected)
    assert len(made) == 4


@pytest.mark.parametrize("base", [10_000.0, 100.0])
def test_weights_of_blocks_written_by_hand_load_name_for_name_and_say_the_same(base):
    torch.manual_seed(0)
    blocks = nn.ModuleList(Block(24, 6, 2, 40, base) for _ in range(2))
    model = make(
        embed_dim=24,
        num_heads=6,
        num_kv_heads=2,
        ffn_dim=40,
        activation="swiglu",
        norm="rms",
        rotary=True,
        rotary_base=base,
        bias=False,
    ).eval()
    assert set(blocks[0].state_dict()) == set(model.layers[0].state_dict())
    model.layers.load_state_dict(blocks.state_dict())
    ids = some_ids()
    x = model.embedding(ids)
    for block in blocks:
        x = block(x)
    logits = model.output(model.norm(x))
    assert torch.equal(model(ids), logits)
    state = model.start()
    for first, last in [(0, 4), (4, 5), (5, 9)]:
        step = model.step(ids[:, first:last], state)
        assert_close(step, logits[:, last - 1], rtol=1e-4, atol=1e-5)


def test_another_base_changes_what_a_rotary_model_says_and_no_weight():
    usual, other = (make(rotary=True, rotary_base=base).eval() for base in (10_000.0, 500_000.0))
    other.load_state_dict(usual.state_dict())
    ids = some_ids()
    assert torch.equal(make(rotary=True).eval()(ids), usual(ids))
    assert torch.equal(usual(ids)[:, :1], other(ids)[:, :1])  # at position 0 nothing is turned
    assert (usual(ids) != other(ids))[:, 2:].any(dim=-1).all()
    with pytest.raises(ValueError, match="rotary_base=-1.0"):
        make(rotary=True, rotary_base=-1.0)


@pytest.mark.parametrize("kind", [GPT, BERT])
def test_no_mask_is_made_where_the_operator_needs_none(kind, monkeypatch):
    usual, asked = F.scaled_dot_product_attention, []

    def noting(*args, attn_mask=None, is_causal=False, **options):
        asked.append((attn_mask is None, is_causal))
        return usual(*args, attn_mask=attn_mask, is_causal=is_causal, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", noting)
    make(kind)(some_ids())
    assert set(asked) == {(True, kind is GPT)}


@every_swap
def test_bert_sees_both_ways_and_no_padding(swap):
    model = make(BERT, **swap).eval()
    ids, lengths = some_ids(), torch.tensor([9, 6, 4])
    changed = ids.clone()
    changed[:, 3] = MASK
    assert (model(ids, lengths)[:, 0] != model(changed, lengths)[:, 0]).any(dim=-1).all()
    other_padding = ids.clone()
    other_padding[1, 6:], other_padding[2, 4:] = MASK, PAD
    after = model(other_padding, lengths)
    for row, length in enumerate(lengths):
        assert torch.equal(model(ids, lengths)[row, :length], after[row, :length])
        alone = model(ids[row : row + 1, :length])
        assert_close(alone[0], after[row, :length], rtol=1e-4, atol=1e-5)


def test_parameters_are_as_many_as_the_formula_says():
    d, ffn, layers = 16, 64, 2
    block = 4 * (d * d + d) + 2 * d * ffn + ffn + d + 4 * d
    assert count(make()) == SIZE * d + 12 * d + layers * block + 2 * d
    assert count(make(norm="rms")) == count(make()) - (2 * layers + 1) * d
    assert count(make(rotary=True)) == count(make()) - 12 * d
    assert count(make(num_kv_heads=1)) == count(make()) - layers * 2 * (d + 1) * (d - d // 4)
    wide = {"embed_dim": 24, "ffn_dim": None}  # by default as many weights, gated or not
    assert count(make(activation="swiglu", **wide)) == count(make(**wide)) - layers * 5 * 24


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def test_the_head_shares_the_embedding_and_a_new_model_knows_next_to_nothing():
    model = make()
    assert model.output.weight is model.embedding.weight
    batch = next_token(some_ids(), torch.tensor([9, 6, 4]), torch.Generator())
    loss, n = language_model_loss()(model, batch)
    assert math.log(SIZE) - 0.5 < loss.item() / n < math.log(SIZE) + 1.5


def test_a_head_of_its_own_the_tanh_gelu_and_another_eps_can_be_had_for_weights_of_others():
    model = make(tied=False, activation="gelu_tanh", eps=1e-3)
    assert count(model) == count(make()) + SIZE * 16
    assert {m.eps for m in model.modules() if isinstance(m, nn.LayerNorm)} == {1e-3}
    assert model.layers[0].feed_forward[1].approximate == "tanh"


@pytest.mark.parametrize("kind", [GPT, BERT])
def test_a_classifier_does_not_see_padding(kind):
    classifier = SentenceClassifier(make(kind).eval(), 3)
    ids, lengths = some_ids(), torch.tensor([9, 6, 0])
    logits = classifier(ids, lengths)
    assert logits.shape == (3, 3)
    assert_close(logits[1:2], classifier(ids[1:2, :6], lengths[1:2]), rtol=1e-4, atol=1e-5)
    assert_close(logits[2], classifier.output.bias)  # nothing was read


@pytest.mark.parametrize("kind", [GPT, BERT])
def test_an_empty_text_and_one_longer_than_the_table_are_refused(kind):
    model = make(kind)
    with pytest.raises(ValueError, match="at least 1"):
        model(torch.empty(2, 0, dtype=torch.long))
    with pytest.raises(ValueError, match="max_len=12"):
        model(some_ids(length=13))
    assert make(kind, rotary=True)(some_ids(length=13)).shape == (3, 13, SIZE)


# Objectives and loss ----------------------------------------------------------------------------


def test_the_next_token_is_asked_for_and_padding_is_not():
    ids = torch.tensor([[BOS, 7, 8, EOS], [BOS, 9, EOS, PAD]])
    batch = next_token(ids, torch.tensor([4, 3]), torch.Generator())
    assert batch.tokens.tolist() == [[BOS, 7, 8], [BOS, 9, EOS]]
    assert batch.targets.tolist() == [[7, 8, EOS], [9, EOS, IGNORE]]
    assert batch.lengths.tolist() == [3, 2] and batch.num_tokens == 5


def test_masked_tokens_are_picked_hidden_and_kept_in_the_right_shares():
    ids = torch.randint(MASK + 1, 1000, (400, 40))
    ids[:, 0], ids[:, -1] = BOS, EOS
    batch = masked_token(1000)(ids, torch.full((400,), 40), torch.Generator().manual_seed(0))
    picked = batch.targets != IGNORE
    assert (picked.sum(dim=1) == 6).all()  # 15 % of 38
    assert not picked[:, [0, -1]].any()
    assert torch.equal(batch.targets[picked], ids[picked])
    assert torch.equal(batch.tokens[~picked], ids[~picked])
    hidden = (batch.tokens == MASK)[picked].float().mean()
    same = (batch.tokens == ids)[picked].float().mean()
    assert abs(hidden - 0.8) < 0.03 and abs(same - 0.1) < 0.03
    assert not ((batch.tokens <= MASK) & (batch.tokens != MASK) & picked).any()


def test_at_least_one_token_is_masked_in_the_shortest_sentence():
    ids = torch.tensor([[BOS, 7, EOS, PAD], [BOS, 8, 9, EOS]])
    batch = masked_token(SIZE)(ids, torch.tensor([3, 4]), torch.Generator())
    assert (batch.targets != IGNORE).sum(dim=1).tolist() == [1, 1]


def test_only_asked_places_count_in_the_loss():
    model = make(BERT).eval()
    ids, lengths = some_ids(), torch.tensor([9, 6, 4])
    batch = masked_token(SIZE)(ids, lengths, torch.Generator().manual_seed(0))
    loss, n = language_model_loss()(model, batch)
    assert n == batch.num_tokens == (batch.targets != IGNORE).sum()
    by_hand = 0.0
    log_probs = model(batch.tokens, lengths).log_softmax(dim=-1)
    for row, place in (batch.targets != IGNORE).nonzero().tolist():
        by_hand -= log_probs[row, place, batch.targets[row, place]].item()
    assert_close(loss.item(), by_hand, rtol=1e-5, atol=1e-4)


# Subwords and loaders ---------------------------------------------------------------------------


def test_subwords_give_back_what_they_read():
    subwords = Subwords(corpus(), size=60)
    for text in ("the newest is lowest .", "stow the new one"):
        assert subwords.decode(subwords.sentence(text)) == text
    assert subwords.tokens[:5] == ("<pad>", "<unk>", "<bos>", "<eos>", "<mask>")
    assert len(subwords) <= 60
    assert subwords.decode([*subwords.encode("the"), MASK, EOS, PAD]) == "the <mask>"


def test_subwords_give_back_a_text_that_speaks_of_special_tokens():
    text = "<bos> the <unk> fills a <pad> , and <mask> ends in <eos> ."
    for size in (40, 300):  # in letters, and in whole words, which are merged to the same names
        learned = Subwords([text] * 9, size=size)
        for subwords in (learned, Subwords.from_merges(learned.tokens, learned.merges)):
            assert min(subwords.encode(text)) > MASK
            assert subwords.decode(subwords.sentence(text)) == text
    ids, lengths = pad([learned.sentence(text)])
    targets = masked_token(len(learned), share=1.0)(ids, lengths, torch.Generator()).targets
    assert (targets != IGNORE).sum() == ids.shape[1] - 2  # all but <bos> and <eos>


def test_an_unknown_character_is_unknown_and_the_rest_is_not():
    subwords = Subwords(corpus(), size=60)
    assert subwords.decode(subwords.encode("low µ low")).startswith("low <unk>")


def test_subwords_learn_the_same_twice_and_each_merge_makes_a_token():
    first, second = (Subwords(corpus(), size=60) for _ in range(2))
    assert first.tokens == second.tokens and first.merges == second.merges
    assert all(left + right in first.tokens for left, right in first.merges)
    assert all(not left.endswith(WORD_END) for left, _ in first.merges)


def test_windows_ask_for_each_token_once():
    ids = list(range(100, 123))
    windows = cut_windows(ids, 5)
    assert [w[1:] for w in windows] == [ids[i + 1 : i + 6] for i in range(0, 20, 5)]
    assert [w[0] for w in windows] == [ids[i] for i in range(0, 20, 5)]


def test_masks_change_from_pass_to_pass_in_training_and_never_in_evaluation():
    def targets(batches):
        return [batch.targets.tolist() for batch in batches]

    sequences = [[BOS, *range(5, 5 + n), EOS] for n in range(1, 11)]
    training, evaluation = (
        TextLoader(sequences, masked_token(SIZE), batch_size=3, shuffle=shuffle)
        for shuffle in (True, False)
    )
    assert targets(training) != targets(training)
    assert targets(evaluation) == targets(evaluation)
    assert sum(len(batch.tokens) for batch in training) == 10


def test_the_texts_of_the_course_are_there():
    sentences, story = load_english(), load_story()
    assert len(sentences) == len(set(sentences)) > 15_000
    assert "i'm home ." in sentences
    assert len(story) > 40 and story[0].startswith("the clock in the tower")
    assert all(sentence[-1] in ".?!" for sentence in story)


def test_a_count_fills_a_gap_as_it_rates_the_whole_row_with_each_token():
    """And after any history its chances sum to 1."""
    draws = torch.Generator().manual_seed(0)
    rows = [
        [BOS, *torch.randint(MASK + 1, 20, (6,), generator=draws).tolist(), EOS] for _ in range(40)
    ]
    counts = Trigrams(rows)
    for history in ([BOS], [BOS, 7], [7, 8], [8, 400]):
        assert_close(counts.after(*history).sum(), torch.tensor(1.0))
    for place in (1, 3, 6):
        left, right = rows[0][:place], rows[0][place + 1 :]
        whole = torch.zeros(len(counts.single))
        for token in range(MASK + 1, len(whole)):
            row = [*left, token, *right[:2]]
            whole[token] = math.prod(
                counts.after(*row[max(i - 2, 0) : i])[row[i]].item() for i in range(place, len(row))
            )
        assert_close(counts.gap(left, right), whole / whole.sum(), rtol=1e-4, atol=1e-7)


# Sampling ---------------------------------------------------------------------------------------


def test_temperature_has_the_right_limits():
    logits = torch.tensor([[2.0, 1.0, -1.0, 1.5]])
    assert_close(next_token_probs(logits), logits.softmax(dim=-1))
    assert_close(next_token_probs(logits, temperature=2.0), (logits / 2).softmax(dim=-1))
    best = torch.tensor([[1.0, 0, 0, 0]])
    for cold, hot in ((0, math.inf), (1e-30, math.inf), (1e-4, 1e9)):
        assert torch.equal(next_token_probs(1e9 * logits, temperature=cold), best)
        assert_close(next_token_probs(logits, temperature=hot), torch.full((1, 4), 0.25))


TEMPERATURES = [0, 5e-324, 1e-45, 1e-3, 1.0, 50.0, 1e30, 1e300, math.inf]


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("top_k", [None, 1, 2, 99])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_at_every_temperature_what_is_forbidden_has_probability_0_and_the_rest_adds_to_1(
    temperature, top_k, dtype
):
    logits = torch.tensor(
        [[0.5, -math.inf, 3.0, 2.0], [1.0, 1.0, -math.inf, -math.inf]], dtype=dtype
    )
    probs = next_token_probs(logits, temperature=temperature, top_k=top_k)
    torch.testing.assert_close(probs.float().sum(-1), torch.ones(2), atol=0.01, rtol=0)
    assert (probs[logits.isinf()] == 0).all()
    drawn = probs > 0.01
    if temperature < 0.1:
        assert drawn[0].tolist() == [False, False, True, False]
    if temperature > 10 and top_k in (None, 99):
        exact = (~logits.isinf()).float() / (~logits.isinf()).sum(-1, keepdim=True)
        torch.testing.assert_close(probs.float(), exact, atol=0.02, rtol=0)


def test_an_infinite_temperature_draws_all_permitted_tokens_alike():
    model, banned = make(), (0, 2, 4)
    rows = sample(
        model, torch.full((600, 1), BOS), max_new=1, temperature=math.inf, banned=banned,
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    counts = torch.bincount(torch.tensor(rows)[:, 0], minlength=model.embedding.num_embeddings)
    assert (counts[list(banned)] == 0).all()
    assert counts.sum() == 600 and (counts > 0).sum() == len(counts) - len(banned)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0}, {"temperature": math.inf}, {"top_k": 2}]
)
def test_a_model_that_has_diverged_writes_nothing_and_says_why(wrong, options):
    model = make()
    with torch.no_grad():
        model.output.weight[7].fill_(wrong)
    with pytest.raises(ValueError, match="a logit is (nan|inf), .*the model has diverged"):
        sample(model, torch.full((2, 3), BOS), max_new=3, **options)


def test_top_k_keeps_the_k_best_in_their_proportions():
    logits = torch.tensor([2.0, 1.0, -1.0, 1.5])
    probs = next_token_probs(logits, top_k=2)
    assert (probs > 0).tolist() == [True, False, False, True]
    assert_close(probs[0] / probs[3], logits[0].exp() / logits[3].exp())
    assert_close(probs.sum(), torch.tensor(1.0))
    assert torch.equal(next_token_probs(logits, top_k=99), next_token_probs(logits))
    assert (next_token_probs(torch.zeros(5), top_k=2) > 0).sum() == 2  # ties too


def test_ruled_out_tokens_stay_ruled_out():
    logits = torch.tensor([0.0, -math.inf, 1.0])
    for temperature in (0, 0.5, 100.0):
        assert next_token_probs(logits, temperature=temperature)[1] == 0


@pytest.mark.parametrize("swap", SWAPS[:: len(SWAPS) // 3], ids=lambda s: str(list(s.values())))
def test_greedy_sampling_on_the_cache_equals_recomputation(swap):
    model = make(**swap).eval()
    prompt = torch.cat([torch.full((3, 1), BOS), some_ids(length=3)], dim=1)
    banned = (PAD, BOS, MASK)
    written = sample(model, prompt, max_new=8, temperature=0, banned=banned, end=EOS)
    with torch.no_grad():
        for row, new in enumerate(written):
            ids = prompt[row : row + 1]
            for token in new:
                logits = model(ids)[0, -1]
                logits[list(banned)] = -math.inf
                assert logits.argmax() == token
                ids = torch.cat([ids, torch.tensor([[token]])], dim=1)
            assert len(new) == 8 or model(ids)[0, -1].argmax() == EOS


@pytest.mark.parametrize("swap", SWAPS[:: len(SWAPS) // 3], ids=lambda s: str(list(s.values())))
@pytest.mark.parametrize(
    ("copied", "grad"), [(copy.copy, False), (copy.copy, True), (copy.deepcopy, False)]
)
def test_continuations_of_a_copied_state_do_not_meet(swap, grad, copied):
    model, ids = make(**swap).eval(), some_ids(length=6)
    with torch.set_grad_enabled(grad):
        states = [model.start()]
        model.step(ids[:, :3], states[0])
        states += [copied(states[0]), copied(states[0])]
        branches = [torch.cat([ids[:, :3], (ids[:, 3:] + 3 * n) % SIZE], 1) for n in range(3)]
        for at in range(3, 6):
            for state, branch in zip(states, branches, strict=True):
                logits = model.step(branch[:, at], state)
                assert_close(logits, model(branch[:, : at + 1])[:, -1])
        states[0].caches[0].length = 3
        assert states[1].length == 6


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("first", [False, True], ids=["the next token", "the prompt"])
@pytest.mark.parametrize("swap", SWAPS[:5])
def test_one_of_prompt_and_next_token_may_be_read_under_autocast(swap, first, grad):
    model = GPT(SIZE, **SMALL, **swap).eval()
    tokens = torch.tensor([[5, 6, 7, 8]])
    with torch.set_grad_enabled(grad):
        state = model.start()
        with torch.autocast("cpu", torch.bfloat16, enabled=first):
            model.step(tokens[:, :3], state)
        with torch.autocast("cpu", torch.bfloat16, enabled=not first):
            found = model.step(tokens[:, 3], state)
        assert_close(found.float(), model(tokens)[:, -1], atol=0.05, rtol=0.05)


def test_draws_follow_their_generator_and_keep_the_models_mode():
    model = make(dropout=0.5).train()
    prompt = torch.full((4, 1), BOS)
    draws = [
        sample(model, prompt, max_new=9, generator=torch.Generator().manual_seed(seed))
        for seed in (0, 0, 1)
    ]
    assert draws[0] == draws[1] != draws[2]
    assert model.training


def test_by_default_tokens_are_drawn_with_the_models_own_probabilities():
    model, prompt = make().eval(), torch.full((500, 1), BOS)
    with torch.no_grad():
        chances = model(prompt)[:, -1].softmax(dim=-1)
    drawn = torch.multinomial(chances, 1, generator=torch.Generator().manual_seed(0))
    assert (
        sample(model, prompt, max_new=1, generator=torch.Generator().manual_seed(0))
        == drawn.tolist()
    )


def test_nothing_but_what_is_banned_is_kept_from_being_drawn():
    model, prompt = make().eval(), torch.full((200, 1), BOS)

    def drawn(**options):
        rows = sample(model, prompt, max_new=9, temperature=50.0, **options)
        return {token for row in rows for token in row}, {len(row) for row in rows}

    assert drawn() == (set(range(SIZE)), {9})
    assert drawn(banned=[5, 6])[0] == set(range(SIZE)) - {5, 6}
    tokens, lengths = drawn(end=7)
    assert tokens == set(range(SIZE)) - {7} and min(lengths) < 9
    assert drawn(banned=[SIZE - 1])[0] == set(range(SIZE - 1))
    assert drawn(banned=(token for token in (5, 6)))[0] == set(range(SIZE)) - {5, 6}


def test_one_best_token_is_greedy_and_a_text_of_nothing_but_its_end_is_empty():
    model, prompt = make(), torch.full((2, 1), BOS)
    greedy = sample(model, prompt, max_new=9, temperature=0)
    assert sample(model, prompt, max_new=9, top_k=1) == greedy
    assert sample(model, prompt, max_new=9, top_k=1, end=greedy[0][0]) == [[], []]


def written(prompt, max_new=3, **options):
    return sample(make(), torch.tensor(prompt, dtype=torch.long), max_new=max_new, **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make(num_heads=3), "num_heads=3"),
        (lambda: make(num_layers=0), "num_layers=0"),
        (lambda: masked_token(SIZE, share=0.0), "share="),
        (lambda: masked_token(SIZE, share=math.nan), "share="),
        (lambda: masked_token(MASK + 1), "special tokens"),
        (lambda: masked_token(SIZE)(torch.tensor([[BOS, EOS]]), torch.tensor([2]), torch.Generator()), "nothing to mask"),
        (lambda: Subwords([], size=100), "empty"),
        (lambda: Subwords(corpus(), size=10), "size=10"),
        (lambda: cut_windows([1, 2, 3, 4, 5], 5), "5 tokens"),
        (lambda: cut_windows([1, 2, 3], 0), "length=0"),
        (lambda: TextLoader([], next_token), "nothing to load"),
        (lambda: TextLoader([[BOS]], next_token), "1 ids"),
        (lambda: next_token_probs(torch.zeros(3), temperature=-1), "temperature=-1; 0 or more"),
        (lambda: next_token_probs(torch.zeros(3), temperature=math.nan), "temperature=nan"),
        (lambda: next_token_probs(torch.zeros(3), temperature=-math.inf), "temperature=-inf; 0 or more"),
        (lambda: next_token_probs(torch.zeros(3), top_k=0), "^top_k=0"),
        (lambda: next_token_probs(torch.full((2, 3), -math.inf)), "all logits are −inf"),
        (lambda: written([[BOS]], banned=[*range(SIZE), 3]), "banned holds every id of the vocabulary"),
        (lambda: written([[]]), "at least <bos>"),
        (lambda: written([BOS, 5]), "prompt has shape"),
        (lambda: written([[BOS, SIZE]]), "prompt holds an id outside a vocabulary of 23"),
        (lambda: written([[BOS]], 0), "max_new=0"),
        (lambda: written([[BOS]], 12), "max_len=12"),
        (lambda: written([[BOS]], banned=[SIZE]), "banned holds an id outside"),
        (lambda: written([[BOS]], end=-1), "end holds an id outside"),
    ],
)  # fmt: skip
def test_what_is_impossible_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
