"""Before training: a sound model has no question mark, and each seeded mistake has one in its own line."""

import math
from dataclasses import dataclass, replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import course_utils as cu
from course_utils.data.prose import next_token
from course_utils.train.losses import language_model_loss

WORDS = 30


@dataclass
class Batch:
    """Reads `target_in` and is asked for `target_out`, as the course's batches."""

    target_in: Tensor
    target_out: Tensor
    target_lens: Tensor


class Model(nn.Module):
    """The next token from this one."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 16)
        self.hidden = nn.Linear(16, 16)
        self.dropout = nn.Dropout(0.1)
        self.norm = nn.BatchNorm1d(16)
        self.output = nn.Linear(16, WORDS)

    def forward(self, tokens):
        hidden = self.hidden(self.embedding(tokens)).relu()
        hidden = self.norm(hidden.flatten(0, 1)).view_as(hidden)
        return self.output(self.dropout(hidden))


PARAMETERS = WORDS * 16 + (16 * 16 + 16) + 2 * 16 + (16 * WORDS + WORDS)


def real(batch):
    return torch.arange(batch.target_in.shape[1]) < batch.target_lens[:, None]


def loss(model, batch):
    kept = real(batch)
    logits = model(batch.target_in)[kept]
    return F.cross_entropy(logits, batch.target_out[kept], reduction="sum"), int(kept.sum())


@pytest.fixture
def batch():
    text = torch.randint(4, WORDS, (8, 7))
    lens = torch.tensor([6, 5, 4, 6, 3, 6, 2, 5])
    padding = torch.arange(6) >= lens[:, None]
    return Batch(text[:, :-1].masked_fill(padding, 0), text[:, 1:].masked_fill(padding, 0), lens)


def lines(capsys, *arguments, **options):
    """What is printed, by the word at the beginning of each line."""
    cu.before_training(*arguments, **{"lr": 0.01} | options)
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("before training ")
    return {row[2:18].strip(): row for row in rows}


def questions(found):
    return [name for name, row in found.items() if row.startswith("?")]


def test_a_sound_model_has_no_question_mark(capsys, batch):
    found = lines(capsys, Model(), batch, loss, expected=PARAMETERS)
    assert questions(found) == []
    assert found["parameters"] == f"✓ parameters       {PARAMETERS:,} as counted by hand"
    assert f"a uniform guess among 30 has {math.log(30):.2f}" in found["first loss"]
    assert found["target"].endswith("not in the input at its position")
    assert "all 7 parts" in found["what learns"]


def test_an_unregistered_parameter_is_missing_from_the_count(capsys, batch):
    class Unregistered(Model):
        def __init__(self):
            super().__init__()
            self.parts = [self.hidden]
            del self.hidden

        def forward(self, tokens):
            hidden = self.parts[0](self.embedding(tokens)).relu()
            return self.output(hidden)

    found = lines(capsys, Unregistered(), batch, loss, expected=PARAMETERS)
    assert questions(found) == ["parameters", "what learns"]
    assert f"so {16 * 16 + 16:,} fewer here: is each part an attribute" in found["parameters"]


def test_a_forgotten_shift_is_noticed(capsys, batch):
    same = replace(batch, target_out=batch.target_in)
    found = lines(capsys, Model(), same, loss)
    assert questions(found) == ["target"]
    assert "100% of it stands in the input" in found["target"]


@pytest.mark.parametrize("how", ["frozen", "detached"])
def test_a_layer_that_does_not_learn_is_named(capsys, batch, how):
    model = Model()
    if how == "frozen":
        model.hidden.requires_grad_(False)
    else:
        model.hidden.register_forward_hook(lambda module, given, answer: answer.detach())
    found = lines(capsys, model, batch, loss)
    assert questions(found) == ["what learns"]
    assert "hidden.weight, hidden.bias" in found["what learns"]
    assert model.hidden.weight.requires_grad == (how == "detached")


@pytest.mark.parametrize(
    ("larger", "lr", "line"), [(1, 1e-5, "overfits"), (50, 0.01, "first loss")]
)
def test_a_model_that_is_sure_before_it_learned_or_a_rate_that_is_too_low_is_noticed(
    capsys, batch, larger, lr, line
):
    model = Model()
    with torch.no_grad():
        model.output.weight.mul_(larger)
    assert line in questions(lines(capsys, model, batch, loss, lr=lr))


def test_model_gradients_modes_and_random_numbers_are_untouched(capsys, batch):
    model = Model()
    model.dropout.eval()
    total, _ = loss(model, batch)
    total.backward()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    gradients = {key: one.grad.clone() for key, one in model.named_parameters()}
    modes = [module.training for module in model.modules()]
    random = torch.get_rng_state()
    first = lines(capsys, model, batch, loss)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())
    assert all(torch.equal(one.grad, gradients[key]) for key, one in model.named_parameters())
    assert [module.training for module in model.modules()] == modes
    assert lines(capsys, model, batch, loss) == first


def test_the_courses_own_batches_and_losses_have_no_question_mark(capsys):
    text = torch.randint(4, 40, (4, 12))
    lengths = torch.tensor([12, 9, 7, 12])
    objective = next_token(text.masked_fill(torch.arange(12) >= lengths[:, None], 0), lengths, None)
    gpt = cu.GPT(40, num_layers=1, embed_dim=16, num_heads=2, max_len=32, dropout=0.0)
    found = lines(capsys, gpt, objective, language_model_loss(), lr=3e-3)
    assert questions(found) == []
    assert list(found) == ["parameters", "first loss", "target", "overfits", "what learns"]
    assert "a uniform guess among 40 has 3.69" in found["first loss"]
