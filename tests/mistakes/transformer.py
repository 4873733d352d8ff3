"""Mistakes that the checks of *The Transformer* must catch."""

import torch

from course_utils.attention import causal_mask

# layer_norm -------------------------------------------------------------------------------------


def over_the_sentence(x, scale, shift, eps=1e-5):
    """Takes mean and variance over all tokens too."""
    axes = tuple(range(1, x.ndim)) if x.ndim > 2 else (-1,)
    mean, variance = x.mean(axes, keepdim=True), x.var(axes, keepdim=True, correction=0)
    return scale * (x - mean) / (variance + eps).sqrt() + shift


def divided_by_d_minus_one(x, scale, shift, eps=1e-5):
    """Takes the variance of a sample."""
    centered = x - x.mean(-1, keepdim=True)
    return scale * centered / (x.var(-1, keepdim=True) + eps).sqrt() + shift


def without_eps(x, scale, shift, eps=1e-5):
    """Divides 0 by 0 for a token of equal features."""
    centered = x - x.mean(-1, keepdim=True)
    return scale * centered / centered.square().mean(-1, keepdim=True).sqrt() + shift


def eps_outside_the_root(x, scale, shift, eps=1e-5):
    """Adds eps to the standard deviation."""
    centered = x - x.mean(-1, keepdim=True)
    return scale * centered / (centered.square().mean(-1, keepdim=True).sqrt() + eps) + shift


def scaled_after_the_shift(x, scale, shift, eps=1e-5):
    """Multiplies the shift by the scale as well."""
    centered = x - x.mean(-1, keepdim=True)
    return scale * (centered / (centered.square().mean(-1, keepdim=True) + eps).sqrt() + shift)


def without_the_mean(x, scale, shift, eps=1e-5):
    """Divides by the root mean square, and centers nothing."""
    return scale * x / (x.square().mean(-1, keepdim=True) + eps).sqrt() + shift


def loses_an_axis(x, scale, shift, eps=1e-5):
    """Forgets keepdim, so that it works for one token only."""
    return scale * (x - x.mean(-1)) / (x.var(-1, correction=0) + eps).sqrt() + shift


# fixed_decoder_layer ----------------------------------------------------------------------------


def _decoder(layer, x, memory, memory_mask, causal, *, normed_shortcut=False):
    for around, sublayer in (
        (layer.around_self, lambda y: layer.self_attention(y, y, y, causal)),
        (layer.around_cross, lambda y: layer.cross_attention(y, memory, memory, memory_mask)),
        (layer.around_feed_forward, layer.feed_forward),
    ):
        y = around.norm(x)
        x = (y if normed_shortcut else x) + sublayer(y)
    return x


def not_fixed(layer, x, memory, memory_mask):
    """Both bugs as they stand in the chapter."""
    causal = causal_mask(x.shape[1]) if layer.training else None
    return _decoder(layer, x, memory, memory_mask, causal, normed_shortcut=True)


def only_the_mask_fixed(layer, x, memory, memory_mask):
    """The shortcut still carries the normed x."""
    return _decoder(layer, x, memory, memory_mask, causal_mask(x.shape[1]), normed_shortcut=True)


def only_the_shortcut_fixed(layer, x, memory, memory_mask):
    """The mask still depends on the mode."""
    causal = causal_mask(x.shape[1]) if layer.training else None
    return _decoder(layer, x, memory, memory_mask, causal)


def never_causal(layer, x, memory, memory_mask):
    """Makes both modes equal, the wrong way."""
    return _decoder(layer, x, memory, memory_mask, None)


def off_by_one(layer, x, memory, memory_mask):
    """Lets each token see the next one."""
    n = x.shape[1]
    return _decoder(layer, x, memory, memory_mask, torch.ones(n, n).tril(1).bool())


def no_memory_mask(layer, x, memory, memory_mask):
    """Reads the source's padding."""
    return _decoder(layer, x, memory, None, causal_mask(x.shape[1]))


def queries_from_the_source(layer, x, memory, memory_mask):
    """Exchanges the two sides of the cross-attention: one output per source token."""
    y = layer.around_self.norm(x)
    x = x + layer.self_attention(y, y, y, causal_mask(x.shape[1]))
    memory = memory + layer.cross_attention(layer.around_cross.norm(memory), x, x)
    return memory + layer.feed_forward(layer.around_feed_forward.norm(memory))


def norm_after(layer, x, memory, memory_mask):
    """Turns to the other order of norm."""
    x = layer.around_self.norm(x + layer.self_attention(x, x, x, causal_mask(x.shape[1])))
    x = layer.around_cross.norm(x + layer.cross_attention(x, memory, memory, memory_mask))
    return layer.around_feed_forward.norm(x + layer.feed_forward(x))


def one_norm_for_all(layer, x, memory, memory_mask):
    """Uses the first norm three times."""
    norm, causal = layer.around_self.norm, causal_mask(x.shape[1])
    y = norm(x)
    x = x + layer.self_attention(y, y, y, causal)
    x = x + layer.cross_attention(norm(x), memory, memory, memory_mask)
    return x + layer.feed_forward(norm(x))


# count_parameters -------------------------------------------------------------------------------


def _count(source, target, d, m, layers, norm_first, *, cross=1, biases=True, norms=(2, 3)):
    attention = 4 * (d * d + (d if biases else 0))
    network, norm = 2 * d * m + m + d, 2 * d
    blocks = (2 + cross) * attention + 2 * network + sum(norms) * norm
    return layers * blocks + 2 * norm * norm_first + (source + target) * d + (d + 1) * target


def forgets_cross_attention(source, target, d, m, layers, norm_first):
    """Counts one attention per decoder block."""
    return _count(source, target, d, m, layers, norm_first, cross=0)


def no_attention_biases(source, target, d, m, layers, norm_first):
    """Counts the projections without their biases."""
    return _count(source, target, d, m, layers, norm_first, biases=False)


def two_norms_everywhere(source, target, d, m, layers, norm_first):
    """Forgets the decoder's third norm."""
    return _count(source, target, d, m, layers, norm_first, norms=(2, 2))


def no_last_norms(source, target, d, m, layers, norm_first):
    """Forgets the norms at the ends of the stacks."""
    return _count(source, target, d, m, layers, False)


def shared_readout(source, target, d, m, layers, norm_first):
    """Takes the last layer to share the embedding's weights."""
    return _count(source, target, d, m, layers, norm_first) - d * target


def counts_positions(source, target, d, m, layers, norm_first):
    """Takes the table of positions for parameters."""
    return _count(source, target, d, m, layers, norm_first) + 128 * d


def ffn_four_times_as_wide(source, target, d, m, layers, norm_first):
    """Writes ffn_dim = 2 · embed_dim into the code."""
    return _count(source, target, d, 2 * d, layers, norm_first)


# greedy_by_recomputing --------------------------------------------------------------------------


def _greedy(model, source, source_lens, max_len, *, place=-1, keep_eos=False, first=2):
    tokens = [first]
    for _ in range(max_len):
        best = model(source, source_lens, torch.tensor([tokens]))[0, place].argmax().item()
        if best == 3 and not keep_eos:
            break
        tokens.append(best)
        if best == 3:
            break
    return tokens[1:]


def keeps_eos(model, source, source_lens, max_len=20):
    """Returns <eos> as part of the sentence."""
    return _greedy(model, source, source_lens, max_len, keep_eos=True)


def keeps_bos(model, source, source_lens, max_len=20):
    """Returns <bos> as part of the sentence."""
    return [2, *_greedy(model, source, source_lens, max_len)]


def never_stops(model, source, source_lens, max_len=20):
    """Goes on after <eos>."""
    tokens = [2]
    for _ in range(max_len):
        tokens.append(model(source, source_lens, torch.tensor([tokens]))[0, -1].argmax().item())
    return tokens[1:]


def one_too_few(model, source, source_lens, max_len=20):
    """Counts <bos> as one of max_len."""
    return _greedy(model, source, source_lens, max_len - 1)


def reads_the_first_place(model, source, source_lens, max_len=20):
    """Takes the logits behind <bos> at every step."""
    return _greedy(model, source, source_lens, max_len, place=0)


def shows_the_last_token_only(model, source, source_lens, max_len=20):
    """Hands the model one token, as to a decoder with a cache."""
    tokens = [2]
    for _ in range(max_len):
        best = model(source, source_lens, torch.tensor([tokens[-1:]]))[0, -1].argmax().item()
        if best == 3:
            break
        tokens.append(best)
    return tokens[1:]


def begins_with_eos(model, source, source_lens, max_len=20):
    """Begins the target with <eos>."""
    return _greedy(model, source, source_lens, max_len, first=3)


MISTAKES = {
    "layer_norm": [
        over_the_sentence,
        divided_by_d_minus_one,
        without_eps,
        eps_outside_the_root,
        scaled_after_the_shift,
        without_the_mean,
        loses_an_axis,
    ],
    "fixed_decoder_layer": [
        not_fixed,
        only_the_mask_fixed,
        only_the_shortcut_fixed,
        never_causal,
        off_by_one,
        no_memory_mask,
        queries_from_the_source,
        norm_after,
        one_norm_for_all,
    ],
    "count_parameters": [
        forgets_cross_attention,
        no_attention_biases,
        two_norms_everywhere,
        no_last_norms,
        shared_readout,
        counts_positions,
        ffn_four_times_as_wide,
    ],
    "greedy_by_recomputing": [
        keeps_eos,
        keeps_bos,
        never_stops,
        one_too_few,
        reads_the_first_place,
        shows_the_last_token_only,
        begins_with_eos,
    ],
}
