"""Diffusion: pixels attend as tokens do, noise has the statistics of its formula, samplers walk back."""

import base64
import io
import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from peers import copy_attention, same_gradients
from PIL import Image
from torch.testing import assert_close

import course_utils as cu
from course_utils.data.images import ImageBatch
from course_utils.kit.live import read_card
from course_utils.lessons.diffusion import live_words, words
from course_utils.lessons.diffusion.runs import SHOWN_NOISE
from course_utils.models.diffusion import (
    CrossAttention,
    PixelAttention,
    UNet,
    time_features,
)
from course_utils.models.noise import Diffusion, cosine_schedule


def awake(module):
    """The module with random numbers where it begins with zeros."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            if not parameter.any():
                parameter.copy_(0.2 * torch.randn(parameter.shape, generator=generator))
    return module


def tokens(x):
    return x.flatten(2).transpose(1, 2)


def as_linear(block):
    """Linear multi-head attention with the weights of a pixel block."""
    channels = block.norm.num_channels
    attention = cu.MultiHeadAttention(channels, block.num_heads)
    names = ("query_proj", "key_proj", "value_proj")
    parts = zip(names, block.qkv.weight[..., 0].chunk(3), block.qkv.bias.chunk(3), strict=True)
    with torch.no_grad():
        for name, weight, bias in parts:
            getattr(attention, name).weight.copy_(weight)
            getattr(attention, name).bias.copy_(bias)
        attention.out_proj.weight.copy_(block.out_proj.weight[..., 0])
        attention.out_proj.bias.copy_(block.out_proj.bias)
    return attention


@pytest.mark.parametrize("num_heads", [1, 2, 4])
def test_attention_among_pixels_is_linear_multi_head_attention(num_heads):
    block = awake(PixelAttention(16, num_heads))
    linear = as_linear(block)
    x = torch.randn(2, 16, 3, 5, requires_grad=True)
    normed = tokens(block.norm(x))
    with cu.record_attention(linear) as expected_maps:
        expected = x + linear(normed, normed, normed).transpose(1, 2).reshape(x.shape)
    with cu.record_attention(block) as maps:
        same_gradients(block(x), expected, [x])
    assert_close(maps["attention"], expected_maps["attention"])
    ours = torch.autograd.grad(block(x).square().sum(), [block.qkv.weight, block.out_proj.weight])
    projections = [linear.query_proj, linear.key_proj, linear.value_proj, linear.out_proj]
    theirs = torch.autograd.grad(expected.square().sum(), [p.weight for p in projections])
    assert_close(ours[0], torch.cat(theirs[:3])[..., None], rtol=1e-3, atol=1e-3)
    assert_close(ours[1], theirs[3][..., None], rtol=1e-3, atol=1e-3)


def test_attention_to_tokens_is_multi_head_attention_of_another_source():
    cross = awake(CrossAttention(16, 10, 2))
    attention = torch.nn.MultiheadAttention(16, 2, kdim=10, vdim=10, batch_first=True)
    copy_attention(cross, attention)
    x, words = torch.randn(2, 16, 3, 5), torch.randn(2, 4, 10)
    expected, _ = attention(tokens(cross.norm(x)), words, words)
    assert_close(cross(x, words), x + expected.mT.reshape(x.shape), rtol=1e-4, atol=1e-5)
    change = cross(x, words[:, :1]) - x
    assert_close(change, change[..., :1, :1].expand_as(change), rtol=1e-4, atol=1e-5)


def test_what_a_network_is_told_it_needs_and_it_matters():
    x, t, labels = torch.randn(2, 1, 4, 4), torch.tensor([3, 9]), torch.tensor([1, 2])
    network, words = awake(UNet(token_dim=6)), torch.randn(2, 3, 6)
    assert not torch.allclose(network(x, t, tokens=words), network(x, t, tokens=2 * words))
    with pytest.raises(ValueError, match="tokens are missing"):
        network(x, t)
    network = awake(UNet(num_classes=3))
    output = network(x, t, labels)
    assert not torch.allclose(network(x, t + 50, labels), output)
    assert not torch.allclose(network(x, t, labels - 1), output)
    with pytest.raises(ValueError, match="labels are missing"):
        network(x, t)
    assert torch.equal(UNet()(x, t, labels), UNet()(x, t))


def test_a_token_that_is_masked_changes_nothing_as_if_every_look_at_it_were_forbidden():
    x, t, words = torch.randn(2, 1, 4, 4), torch.tensor([3, 9]), torch.randn(2, 3, 6)
    network, mask = awake(UNet(token_dim=6)), torch.tensor([[True, False, True]]).expand(2, 3)
    masked = network(x, t, tokens=words, token_mask=mask)
    assert_close(masked, network(x, t, tokens=words[:, [0, 2]]))
    assert not torch.allclose(masked, network(x, t, tokens=words))
    with cu.intervene(network) as acts:
        acts.forbid("cross", keys=1)
        assert_close(masked, network(x, t, tokens=words))
    nothing = network(x, t, tokens=words, token_mask=torch.zeros_like(mask))
    assert_close(nothing, network(x, t, tokens=2 * words, token_mask=torch.zeros_like(mask)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PixelAttention(16, 3), "channels=16 is not divisible by num_heads=3"),
        (lambda: PixelAttention(12, 3), "channels=12 is not divisible by groups=8"),
        (lambda: PixelAttention(0), "channels=0"),
        (lambda: PixelAttention(8)(torch.zeros(1, 4, 2, 2)), r"\(1, 4, 2, 2\); \(batch, 8"),
        (lambda: UNet(widths=(8, 16), attention=(True,)), "one of each per level"),
        (lambda: UNet()(torch.zeros(1, 1, 14, 15), torch.ones(1)), "multiples of 2"),
        (lambda: UNet()(torch.zeros(2, 1, 4, 4), torch.ones(3)), r"t has shape \(3,\)"),
        (lambda: time_features(torch.ones(1), 5), "dim=5"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# Noise ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [0, 10, 100, 200])
def test_noised_pictures_have_the_mean_and_variance_of_the_formula(t):
    diffusion = Diffusion(cosine_schedule(200))
    x = torch.full((1, 1, 300, 300), 0.8)
    noisy = diffusion.add_noise(x, torch.tensor([t]), torch.randn(x.shape))
    a = diffusion.alpha_bar[t].item()
    assert abs(noisy.mean() - 0.8 * math.sqrt(a)) < 0.02
    assert abs(noisy.var() - (1 - a)) < 0.02


class KnowsThePicture:
    """The perfect denoiser when there is only one picture."""

    training = False

    def __init__(self, diffusion, point):
        self.diffusion, self.point = diffusion, point

    def __call__(self, x, t, labels=None):
        a = self.diffusion.alpha_bar[t][:, None, None, None]
        return (x - a.sqrt() * self.point) / (1 - a).sqrt()


@pytest.mark.parametrize("eta", [0.5, 1.0])
def test_each_step_draws_eta_of_the_noise_of_the_ancestral_one(eta):
    """Song et al. (2021), equations 12 and 16; with all of it Ho et al. (2020), equations 6 and 7."""
    diffusion, point, seen = Diffusion(cosine_schedule(40)), torch.full((2, 1, 4, 4), 0.3), []
    knows = KnowsThePicture(diffusion, point)

    def model(x, t, labels):
        seen.append((x, t[0]))
        return knows(x, t)

    diffusion.sample(model, point.shape, eta=eta, seed=7)
    generator = torch.Generator().manual_seed(7)
    assert_close(seen[0][0], torch.randn(point.shape, generator=generator))
    for (x, t), (y, s) in itertools.pairwise(seen):
        a, b = diffusion.alpha_bar[t], diffusion.alpha_bar[s]
        alpha, beta = a / b, 1 - a / b
        sigma = eta * ((1 - b) / (1 - a) * beta).sqrt()
        mean = b.sqrt() * point + (1 - b - sigma**2).sqrt() * knows(x, t[None])
        if eta == 1:
            ancestral = (b.sqrt() * beta * point + alpha.sqrt() * (1 - b) * x) / (1 - a)
            assert_close(mean, ancestral, rtol=1e-3, atol=1e-4)
        fresh = torch.randn(point.shape, generator=generator)
        assert_close(y, mean + sigma * fresh, rtol=1e-3, atol=1e-4)


def test_sampling_depends_on_the_seed_only_and_leaves_other_random_numbers_alone():
    network, diffusion = awake(UNet()), Diffusion(cosine_schedule(5))
    torch.manual_seed(1)
    first = diffusion.sample(network, (2, 1, 4, 4), seed=3)
    after = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(1), after)
    assert torch.equal(diffusion.sample(network, (2, 1, 4, 4), seed=3), first)
    assert not torch.equal(diffusion.sample(network, (2, 1, 4, 4), seed=4), first)
    assert first.abs().max() <= 1


def test_sampling_and_measuring_happen_where_the_model_is():
    """As on a GPU: the model is elsewhere, pictures and labels are on the CPU."""
    diffusion, network = Diffusion(cosine_schedule(5)), UNet(num_classes=3).to("meta")
    labels = torch.tensor([0, 2])
    assert diffusion.sample(network, (2, 1, 4, 4), labels=labels).device.type == "meta"
    errors, t = diffusion.errors(network, torch.zeros(2, 1, 4, 4), labels)
    assert errors.device.type == t.device.type == "meta" and errors.shape == (2,)


def sampled(**wrong):
    return Diffusion(cosine_schedule(5)).sample(UNet(), (1, 1, 4, 4), **wrong)


def noised(*t):
    x = torch.zeros(2, 1, 2, 2)
    return Diffusion(cosine_schedule(10)).add_noise(x, torch.tensor(t), x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Diffusion(torch.tensor([1.0])), "begin at 1 and fall"),
        (lambda: Diffusion(torch.tensor([1.0, 0.5, 0.5])), "begin at 1 and fall"),
        (lambda: Diffusion(torch.tensor([1.0, 0.5, 0.0])), "begin at 1 and fall"),
        (lambda: Diffusion(torch.tensor([[1.0, 0.5]])), "begin at 1 and fall"),
        (lambda: cosine_schedule(0), "steps=0"),
        (lambda: noised(5, 11), "0 <= t <= 10"),
        (lambda: noised(5), "one t per picture"),
        (lambda: sampled(num_steps=6), "num_steps"),
        (lambda: sampled(eta=1.5), "eta"),
    ],
)
def test_noise_out_of_range_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_errors_are_the_loss_on_fixed_draws():
    diffusion, images = Diffusion(cosine_schedule(20)), torch.rand(700, 1, 4, 4)
    zero = UNet()
    errors, t = diffusion.errors(zero, images)
    again, _ = diffusion.errors(zero, images)
    other, _ = diffusion.errors(zero, images, seed=1)
    assert torch.equal(errors, again) and not torch.equal(errors, other)
    assert t.bincount(minlength=21)[1:].tolist() == [35] * 20
    assert abs(errors.mean() - 1) < 0.05  # predicting no noise at all
    assert zero.training
    loss, count = diffusion.loss(zero, ImageBatch(images, torch.zeros(700, dtype=torch.long)))
    assert count == 700 and abs(loss / count - 1) < 0.05 and diffusion.loss.per == "pixel"


# Two garments for two words -----------------------------------------------------------------------


def test_the_frames_of_the_first_screen_were_drawn_by_the_stored_network():
    card, network = read_card("words"), words.painter()
    captions, noise = (
        torch.tensor(live_words.CAPTIONS),
        words.noises(len(live_words.CAPTIONS), SHOWN_NOISE),
    )
    step, head = words.VISITED[0], words.telling_head(network)
    with torch.no_grad():
        predicted = words.guided_by_words(network)(noise[0], step.expand(len(captions)), captions)
    a = cosine_schedule(200)[step]
    guesses = ((noise[0] - (1 - a).sqrt() * predicted) / a.sqrt()).clamp(-1, 1)
    for x, guess, caption, drawn in zip(noise[0], guesses, captions, card["captions"], strict=True):
        assert drawn["words"] == [words.NAMES[word] for word in caption]
        assert drawn["maps"][0] == live_words.letters(
            words.weights_of_left(network, x[None], caption[None], step)[:, head]
        )
        sheet = Image.open(io.BytesIO(base64.b64decode(drawn["sheet"])))
        first = torch.from_numpy(np.array(sheet)[:28, :56].astype(np.float32)) / 7.5 - 1
        assert (first - guess[0]).abs().mean() < 0.1


def test_folded_pictures_keep_every_pixel_and_say_where_it_lies():
    x = torch.randn(2, 1, 28, 56)
    folded = words.fold_pixels(x)
    assert torch.equal(F.pixel_shuffle(folded[:, :4], 2), x)
    assert folded[0, 4, 3].tolist() == sorted(folded[0, 4, 3].tolist()) and folded[0, 4].std() > 0.5


def test_a_training_ends_with_the_running_mean_whose_held_out_loss_it_notes(monkeypatch):
    images = torch.randint(256, (64, 1, 28, 28), dtype=torch.uint8)
    monkeypatch.setattr(words, "garments", lambda split: (images, torch.arange(64) % 10))
    monkeypatch.setattr(words, "PAIRS", 1)
    monkeypatch.setattr(words, "EVERY_STEPS", 5)
    monkeypatch.setattr(words, "warmup_hold_decay", lambda *steps: lambda step: 1.0)
    measured = []

    def held_out(mean):
        measured.append(mean.module.words.weight.clone())
        return 0.25

    monkeypatch.setattr(words, "held_out_word_loss", held_out)
    network = words.WordUNet()
    curves = words.fit(network, steps=10, lr=1e-3, seed=0)
    assert [step for step, _ in curves["loss"]] == [5, 10] and curves["held out"] == [[10, 0.25]]
    (mean,) = measured
    assert torch.equal(network.words.weight, mean)


def test_the_running_mean_follows_the_last_weights_less_and_less():
    old, new = torch.zeros(1), torch.ones(1)
    shares = [words.running_mean(old, new, torch.tensor(n)).item() for n in (10, 90, 10**6)]
    assert_close(shares, [0.5, 0.1, 0.001])
