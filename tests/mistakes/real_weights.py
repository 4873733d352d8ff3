"""Mistakes that the checks of *Real weights* must catch."""

import torch
from mistakes.table import wrong
from torch import nn

import course_utils
from course_utils.attention import MultiHeadAttention
from course_utils.layers import EncoderLayer, FeedForward, SwiGLU
from course_utils.lessons.real_weights import smollm
from course_utils.positions import Rotation


class _Block(smollm.Block):
    """The block as it should be, cut so that a mistake needs a line or two."""

    def forward(self, x, cache=None):
        x = x + self.attend(self.attention_norm(x), cache)
        return x + self.feed_forward(self.feed_forward_norm(x))

    def attend(self, y, cache):
        return self.attention(y, y, y, is_causal=True, cache=cache, encode=self.rotation(y, cache))

    def rotation(self, y, cache):
        start = 0 if cache is None else cache.length
        return Rotation(y.shape[1], self.head_dim, start=start, base=self.base)


class my_block:
    # Parameters

    class two_parts_to_go(_Block):
        """Has made attention and network, and no norms yet."""

        def __init__(self, *sizes):
            super().__init__(*sizes)
            del self.attention_norm, self.feed_forward_norm
            self.attention_norm = self.feed_forward_norm = ...

    class without_super(nn.Module):
        """Makes the parts before nn.Module is ready."""

        def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
            self.attention = MultiHeadAttention(embed_dim, num_heads)

    class no_module:
        """Inherits from nothing."""

        def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
            self.attention_norm = nn.RMSNorm(embed_dim)

    class calls_the_library(EncoderLayer):
        """The course's own block under another name."""

        def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
            super().__init__(
                embed_dim, num_heads, ffn_dim, dropout=0.0, activation="swiglu", norm="rms", rotary=True,
                rotary_base=base, num_kv_heads=num_kv_heads, bias=False,
            )  # fmt: skip

        def forward(self, x, cache=None):
            return super().forward(x, is_causal=True, cache=cache)

    class one_norm_for_both(_Block):
        """Has one norm, and uses it twice."""

        def __init__(self, *sizes):
            super().__init__(*sizes)
            del self.feed_forward_norm

        def forward(self, x, cache=None):
            x = x + self.attend(self.attention_norm(x), cache)
            return x + self.feed_forward(self.attention_norm(x))

    class layer_norm(_Block):
        """Chapter 13's norm, with a bias."""

        def __init__(self, embed_dim, *sizes):
            super().__init__(embed_dim, *sizes)
            self.attention_norm = nn.LayerNorm(embed_dim)
            self.feed_forward_norm = nn.LayerNorm(embed_dim)

    class biases(_Block):
        """Leaves out bias=False."""

        def __init__(self, embed_dim, num_heads, num_kv_heads, *sizes):
            super().__init__(embed_dim, num_heads, num_kv_heads, *sizes)
            self.attention = MultiHeadAttention(embed_dim, num_heads, num_kv_heads=num_kv_heads)

    class a_head_of_keys_for_each_query(_Block):
        """Leaves out num_kv_heads."""

        def __init__(self, embed_dim, num_heads, *sizes):
            super().__init__(embed_dim, num_heads, *sizes)
            self.attention = MultiHeadAttention(embed_dim, num_heads, bias=False)

    class plain_network(_Block):
        """Chapter 13's network."""

        def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
            super().__init__(embed_dim, num_heads, num_kv_heads, ffn_dim, base)
            self.feed_forward = FeedForward(embed_dim, ffn_dim, activation="gelu")

    class chapter_13(_Block):
        """All of it as it was there."""

        def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
            nn.Module.__init__(self)
            self.attention = MultiHeadAttention(embed_dim, num_heads)
            self.feed_forward = FeedForward(embed_dim, ffn_dim, activation="gelu")
            self.attention_norm, self.feed_forward_norm = (
                nn.LayerNorm(embed_dim),
                nn.LayerNorm(embed_dim),
            )

    class four_times_as_wide(_Block):
        """Makes the network as wide as chapter 13's."""

        def __init__(self, embed_dim, *sizes):
            super().__init__(embed_dim, *sizes)
            self.feed_forward = SwiGLU(embed_dim, 4 * embed_dim)

    class by_place(_Block):
        """Gives num_kv_heads without its name."""

        def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
            super().__init__(embed_dim, num_heads, num_kv_heads, ffn_dim, base)
            self.attention = MultiHeadAttention(embed_dim, num_heads, num_kv_heads, bias=False)

    class encode_when_made(_Block):
        """Hands the rotation to the constructor."""

        def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
            super().__init__(embed_dim, num_heads, num_kv_heads, ffn_dim, base)
            rotation = Rotation(512, embed_dim // num_heads, base=base)
            self.attention = MultiHeadAttention(
                embed_dim, num_heads, num_kv_heads=num_kv_heads, bias=False, encode=rotation
            )

    class x_when_made(_Block):
        """Makes the rotation before there is an x."""

        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.rotation = Rotation(x.shape[1], self.head_dim, base=self.base)  # noqa: F821

    class heads_first(_Block):
        """Exchanges the attention's two sizes."""

        def __init__(self, embed_dim, num_heads, num_kv_heads, *sizes):
            super().__init__(embed_dim, num_heads, num_kv_heads, *sizes)
            self.attention = MultiHeadAttention(num_heads, embed_dim, num_kv_heads=num_kv_heads)

    class norm_without_bias(_Block):
        """RMSNorm has no bias to leave out."""

        def __init__(self, embed_dim, *sizes):
            super().__init__(embed_dim, *sizes)
            self.attention_norm = nn.RMSNorm(embed_dim, eps=1e-5, bias=False)

    class gated_with_activation(_Block):
        """Keeps chapter 13's argument of the network."""

        def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
            super().__init__(embed_dim, num_heads, num_kv_heads, ffn_dim, base)
            self.feed_forward = SwiGLU(embed_dim, ffn_dim, activation="silu")

    class kv_heads(_Block):
        """Shortens num_kv_heads."""

        def __init__(self, embed_dim, num_heads, num_kv_heads, *sizes):
            super().__init__(embed_dim, num_heads, num_kv_heads, *sizes)
            self.attention = MultiHeadAttention(embed_dim, num_heads, kv_heads=num_kv_heads)

    class of_the_package(_Block):
        """Looks for SwiGLU under cu."""

        def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
            super().__init__(embed_dim, num_heads, num_kv_heads, ffn_dim, base)
            self.feed_forward = course_utils.SwiGLU(embed_dim, ffn_dim)

    class swiglu_for_an_activation(_Block):
        """Takes SwiGLU for one."""

        def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
            super().__init__(embed_dim, num_heads, num_kv_heads, ffn_dim, base)
            self.feed_forward = FeedForward(embed_dim, ffn_dim, activation="swiglu")

    class norm_of_the_network(_Block):
        """Makes the second norm as wide as the network."""

        def __init__(self, embed_dim, num_heads, num_kv_heads, ffn_dim, base):
            super().__init__(embed_dim, num_heads, num_kv_heads, ffn_dim, base)
            self.feed_forward_norm = nn.RMSNorm(ffn_dim, eps=1e-5)

    class other_names(_Block):
        """Calls the norms as it likes."""

        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.norm1, self.norm2 = self.attention_norm, self.feed_forward_norm
            del self.attention_norm, self.feed_forward_norm

        def forward(self, x, cache=None):
            x = x + self.attend(self.norm1(x), cache)
            return x + self.feed_forward(self.norm2(x))

    # The shape

    class only_the_parts(_Block):
        """Has all parts, and forward is still empty."""

        def forward(self, x, cache=None): ...

    class turns_whole_rows(_Block):
        """Makes the rotation as wide as x."""

        def rotation(self, y, cache):
            return Rotation(y.shape[1], y.shape[2], base=self.base)

    class length_of_the_batch(_Block):
        """Takes the batch for the length."""

        def rotation(self, y, cache):
            return Rotation(len(y), self.head_dim, base=self.base)

    class made_once(_Block):
        """Makes a long rotation in __init__."""

        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.turn = Rotation(512, self.head_dim, base=self.base)

        def rotation(self, y, cache):
            return self.turn

    class heads_for_columns(_Block):
        """Takes the number of heads for the size of one."""

        def rotation(self, y, cache):
            return Rotation(y.shape[1], self.attention.num_heads, base=self.base)

    class sizes_exchanged(_Block):
        """Gives the rotation the size of a head first."""

        def rotation(self, y, cache):
            return Rotation(self.head_dim, y.shape[1], base=self.base)

    class start_by_place(_Block):
        """Gives start and base without their names."""

        def rotation(self, y, cache):
            return Rotation(y.shape[1], self.head_dim, 0, self.base)

    class only_the_length(_Block):
        """Leaves out the size of a head."""

        def rotation(self, y, cache):
            return Rotation(y.shape[1], base=self.base)

    class names_head_dim(_Block):
        """Takes the task's word for an argument's name."""

        def rotation(self, y, cache):
            return Rotation(y.shape[1], head_dim=self.head_dim, base=self.base)

    class length_of_a_row(_Block):
        """Takes the last axis for the length."""

        def rotation(self, y, cache):
            return Rotation(y.shape[-1], self.head_dim, base=self.base)

    class the_whole_shape(_Block):
        """Gives the rotation all of the shape."""

        def rotation(self, y, cache):
            return Rotation(y.shape, self.head_dim, base=self.base)

    class switched_on(_Block):
        """Takes encode for a switch."""

        def rotation(self, y, cache):
            return True

    class rotation_for_a_mask(_Block):
        """Gives the rotation without its name, where the mask stands."""

        def attend(self, y, cache):
            return self.attention(y, y, y, self.rotation(y, cache), is_causal=True, cache=cache)

    class the_class_itself(_Block):
        """Hands over Rotation, and not a rotation."""

        def rotation(self, y, cache):
            return Rotation

    class turned_beforehand(_Block):
        """Hands over what a rotation gives."""

        def rotation(self, y, cache):
            return super().rotation(y, cache)(y)

    class turned_as_wide_as_x(_Block):
        """The same with a rotation that fits y."""

        def rotation(self, y, cache):
            return Rotation(y.shape[1], y.shape[2], base=self.base)(y)

    class always_a_cache(_Block):
        """Asks for the length of no cache."""

        def rotation(self, y, cache):
            return Rotation(y.shape[1], self.head_dim, start=cache.length, base=self.base)

    class len_of_the_cache(_Block):
        """Calls len on it."""

        def rotation(self, y, cache):
            return Rotation(y.shape[1], self.head_dim, start=len(cache), base=self.base)

    class base_not_kept(_Block):
        """Uses an argument of __init__ in forward."""

        def rotation(self, y, cache):
            return Rotation(y.shape[1], self.head_dim, base=base)  # noqa: F821

    class base_not_set(_Block):
        """Reads self.base, and never sets it."""

        def __init__(self, *sizes):
            super().__init__(*sizes)
            del self.base

    class sizes_in_the_call(_Block):
        """Gives the call what belongs to the making."""

        def attend(self, y, cache):
            heads = self.attention.num_kv_heads
            return self.attention(y, y, y, is_causal=True, cache=cache, num_kv_heads=heads)

    class rotation_for_encode(_Block):
        """Calls the argument rotation."""

        def attend(self, y, cache):
            return self.attention(
                y, y, y, is_causal=True, cache=cache, rotation=self.rotation(y, cache)
            )

    class queries_only(_Block):
        """Calls the attention with one input."""

        def attend(self, y, cache):
            return self.attention(y, is_causal=True)

    # Who looks, and what is passed on

    class looks_ahead(_Block):
        """Leaves out is_causal."""

        def attend(self, y, cache):
            return self.attention(y, y, y, cache=cache, encode=self.rotation(y, cache))

    class norm_after(_Block):
        """The first generation's order: the norm comes after the sum."""

        def forward(self, x, cache=None):
            x = self.attention_norm(x + self.attend(x, cache))
            return self.feed_forward_norm(x + self.feed_forward(x))

    class passes_on_the_norm(_Block):
        """Adds to what the norm gives, not to the stream."""

        def forward(self, x, cache=None):
            x = self.attention_norm(x)
            x = x + self.attend(x, cache)
            x = self.feed_forward_norm(x)
            return x + self.feed_forward(x)

    class without_residuals(_Block):
        """Adds nothing."""

        def forward(self, x, cache=None):
            return self.feed_forward(
                self.feed_forward_norm(self.attend(self.attention_norm(x), cache))
            )

    class adds_x_twice(_Block):
        """Adds both sums together."""

        def forward(self, x, cache=None):
            after = x + self.attend(self.attention_norm(x), cache)
            return x + after + self.feed_forward(self.feed_forward_norm(after))

    class reads_the_stream(_Block):
        """The attention reads x itself."""

        def forward(self, x, cache=None):
            x = x + self.attend(x, cache)
            return x + self.feed_forward(self.feed_forward_norm(x))

    class network_without_norm(_Block):
        """The network reads x itself."""

        def forward(self, x, cache=None):
            x = x + self.attend(self.attention_norm(x), cache)
            return x + self.feed_forward(x)

    class norms_exchanged(_Block):
        """Each part reads through the other's norm."""

        def forward(self, x, cache=None):
            x = x + self.attend(self.feed_forward_norm(x), cache)
            return x + self.feed_forward(self.attention_norm(x))

    class first_norm_twice(_Block):
        """Has both norms, and uses the first one twice."""

        def forward(self, x, cache=None):
            x = x + self.attend(self.attention_norm(x), cache)
            return x + self.feed_forward(self.attention_norm(x))

    class side_by_side(_Block):
        """The network reads x as it was before the attention."""

        def forward(self, x, cache=None):
            attended = self.attend(self.attention_norm(x), cache)
            return x + attended + self.feed_forward(self.feed_forward_norm(x))

    class subtracts_the_mean(_Block):
        """LayerNorm without its bias, which has RMSNorm's parameters."""

        def __init__(self, embed_dim, *sizes):
            super().__init__(embed_dim, *sizes)
            self.attention_norm = nn.LayerNorm(embed_dim, bias=False)
            self.feed_forward_norm = nn.LayerNorm(embed_dim, bias=False)

    # Positions

    class no_rotation(_Block):
        """Forgets encode."""

        def attend(self, y, cache):
            return self.attention(y, y, y, is_causal=True, cache=cache)

    class turns_queries_only(_Block):
        """Its encode leaves the keys as they are."""

        def attend(self, y, cache):
            rotation, count = self.rotation(y, cache), self.attention.num_heads
            return self.attention(
                y, y, y, is_causal=True, cache=cache, encode=lambda z: rotation(z) if z.shape[1] == count else z
            )  # fmt: skip

    class one_position_for_all(_Block):
        """A rotation for a single token, which broadcasts."""

        def rotation(self, y, cache):
            return Rotation(1, self.head_dim, base=self.base)

    class base_forgotten(_Block):
        """Rotation's own base, 10,000: in SmolLM2 a silent mistake."""

        def rotation(self, y, cache):
            return Rotation(y.shape[1], self.head_dim, start=0 if cache is None else cache.length)

    class base_written_down(_Block):
        """SmolLM2's base, whatever it is given."""

        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.base = 100_000.0

    # Small numbers

    class epsilon_forgotten(_Block):
        """nn.RMSNorm's own ε, about 10⁻⁷."""

        def __init__(self, embed_dim, *sizes):
            super().__init__(embed_dim, *sizes)
            self.attention_norm, self.feed_forward_norm = (
                nn.RMSNorm(embed_dim),
                nn.RMSNorm(embed_dim),
            )

    class epsilon_in_one_norm(_Block):
        """Only the first norm has the file's ε."""

        def __init__(self, embed_dim, *sizes):
            super().__init__(embed_dim, *sizes)
            self.feed_forward_norm = nn.RMSNorm(embed_dim)

    # The cache

    class takes_no_cache(_Block):
        """Its forward has no such argument."""

        def forward(self, x):
            return super().forward(x)

    class forgets_the_cache(_Block):
        """Takes a cache, and does not hand it on."""

        def attend(self, y, cache):
            return self.attention(y, y, y, is_causal=True, encode=self.rotation(y, cache))

    class begins_again(_Block):
        """Each piece stands at the beginning."""

        def rotation(self, y, cache):
            return Rotation(y.shape[1], self.head_dim, base=self.base)

    class turns_old_and_new(_Block):
        """Makes angles for the cache's tokens, too."""

        def rotation(self, y, cache):
            held = 0 if cache is None else cache.length
            return Rotation(held + y.shape[1], self.head_dim, base=self.base)

    class turns_the_stream(_Block):
        """Turns y itself, as wide as it is."""

        def attend(self, y, cache):
            start = 0 if cache is None else cache.length
            y = Rotation(y.shape[1], y.shape[2], start=start, base=self.base)(y)
            return self.attention(y, y, y, is_causal=True, cache=cache)

    class counts_too_early(_Block):
        """Believes that the cache holds the new tokens already."""

        def rotation(self, y, cache):
            start = 0 if cache is None else cache.length - y.shape[1]
            return Rotation(y.shape[1], self.head_dim, start=start, base=self.base)

    class looks_ahead_in_a_piece(_Block):
        """Is causal only without a cache: right for single tokens, and wrong for a prompt."""

        def attend(self, y, cache):
            alone = cache is None
            return self.attention(
                y, y, y, is_causal=alone, cache=cache, encode=self.rotation(y, cache)
            )

    # The rest

    class adds_in_place(_Block):
        """Writes into the caller's x."""

        def forward(self, x, cache=None):
            x += self.attend(self.attention_norm(x), cache)
            x += self.feed_forward(self.feed_forward_norm(x))
            return x

    class cuts_the_way_back(_Block):
        """Detaches what the attention gives."""

        def forward(self, x, cache=None):
            x = x + self.attend(self.attention_norm(x), cache).detach()
            return x + self.feed_forward(self.feed_forward_norm(x))

    class never_trains(_Block):
        """Computes without gradients."""

        @torch.no_grad()
        def forward(self, x, cache=None):
            return super().forward(x, cache)


def _ends(raw, dtype=torch.float16):
    """Scale and least value, each (blocks, 1)."""
    return raw[:, :2].clone().view(dtype).float(), raw[:, 2:4].clone().view(dtype).float()


def _numbers(raw):
    return torch.cat([raw[:, 4:] & 15, raw[:, 4:] >> 4], dim=1)


class my_q4_1:
    def halves_interleaved(raw):
        """Both halves of a byte side by side."""
        scale, least = _ends(raw)
        return scale * torch.stack([raw[:, 4:] & 15, raw[:, 4:] >> 4], dim=-1).flatten(1) + least

    def high_halves_first(raw):
        """Takes the high half for the first."""
        scale, least = _ends(raw)
        return scale * torch.cat([raw[:, 4:] >> 4, raw[:, 4:] & 15], dim=1) + least

    def ends_exchanged(raw):
        """Takes the least value for the scale."""
        scale, least = _ends(raw)
        return least * _numbers(raw) + scale

    def subtracts(raw):
        """Takes the least value off."""
        scale, least = _ends(raw)
        return scale * _numbers(raw) - least

    def multiplies_the_sum(raw):
        """Scales the least value, too."""
        scale, least = _ends(raw)
        return scale * (_numbers(raw) + least)

    def least_forgotten(raw):
        """Only the scale."""
        return _ends(raw)[0] * _numbers(raw)

    def q4_0(raw):
        """Moves the numbers down by 8, and has a least value all the same."""
        scale, least = _ends(raw)
        return scale * (_numbers(raw).float() - 8) + least

    def q4_0_in_bytes(raw):
        """Moves them down by 8 in uint8, which has nothing below 0."""
        scale, least = _ends(raw)
        return scale * (_numbers(raw) - 8) + least

    def whole_numbers(raw):
        """Reads two bytes as a whole number."""
        scale, least = _ends(raw, torch.int16)
        return scale * _numbers(raw) + least

    def one_byte_each(raw):
        """Takes the first byte for the scale and the second for the least value."""
        return raw[:, :1].float() * _numbers(raw) + raw[:, 1:2].float()

    def joined_in_bytes(raw):
        """Joins two bytes by hand, in uint8, where 256 is 0."""
        scale, least = (raw[:, at : at + 1] + 256 * raw[:, at + 1 : at + 2] for at in (0, 2))
        return scale.float() * _numbers(raw) + least.float()

    def not_shifted(raw):
        """Leaves the high halves where they are, 16 times too large."""
        scale, least = _ends(raw)
        return scale * torch.cat([raw[:, 4:] & 15, raw[:, 4:] & 240], dim=1) + least

    def divided(raw):
        """Divides by 16, and keeps what is behind the point."""
        scale, least = _ends(raw)
        return scale * torch.cat([raw[:, 4:] & 15, raw[:, 4:] / 16], dim=1) + least

    def all_twenty_bytes(raw):
        """Takes scale and least value for numbers, too."""
        scale, least = _ends(raw)
        return scale * torch.cat([raw & 15, raw >> 4], dim=1) + least

    def low_halves_only(raw):
        """A number for each byte."""
        scale, least = _ends(raw)
        return scale * (raw[:, 4:] & 15) + least

    def flat(raw):
        """All numbers in one row."""
        scale, least = _ends(raw)
        return (scale * _numbers(raw) + least).flatten()

    def first_block_for_all(raw):
        """Scale and least value of the first block."""
        scale, least = _ends(raw[:1])
        return scale * _numbers(raw) + least

    def only_the_first_block(raw):
        """Decodes one block."""
        scale, least = _ends(raw[:1])
        return scale * _numbers(raw[:1]) + least

    half_precision = wrong(
        "Computes in float16.",
        lambda raw: (
            raw[:, :2].view(torch.float16) * _numbers(raw) + raw[:, 2:4].view(torch.float16)
        ),
    )
    half_precision_made_whole = wrong(
        "Makes float32 of what float16 has rounded.",
        lambda raw: my_q4_1.half_precision(raw).float(),
    )

    # What raises an error with more than one block

    def as_the_cell_above(raw):
        """Copies .item() from there."""
        scale, least = (raw[:, i : i + 2].view(torch.float16).item() for i in (0, 2))
        return scale * _numbers(raw) + least

    def python_float(raw):
        """The same by Python's float."""
        scale, least = (float(raw[:, i : i + 2].view(torch.float16)) for i in (0, 2))
        return scale * _numbers(raw) + least

    two_bytes_made_float = wrong(
        "Makes a float of each byte, and has two for d.",
        lambda raw: raw[:, 0:2].float() * _numbers(raw) + raw[:, 2:4].float(),
    )
    two_bytes_to_half = wrong(
        "The same by .to.",
        lambda raw: raw[:, 0:2].to(torch.float16) * _numbers(raw) + raw[:, 2:4].to(torch.float16),
    )
    first_two_bytes = wrong(
        "Takes byte 0 for d and byte 1 for m, without a column.",
        lambda raw: raw[:, 0] * _numbers(raw) + raw[:, 1],
    )

    def below_each_other(raw):
        """Joins along the blocks."""
        scale, least = _ends(raw)
        return scale * torch.cat([raw[:, 4:] & 15, raw[:, 4:] >> 4]) + least

    def half_and_half_below(raw):
        """Computes first, and joins along the blocks afterwards."""
        scale, least = _ends(raw)
        return torch.cat([scale * (raw[:, 4:] & 15) + least, scale * (raw[:, 4:] >> 4) + least])

    def no_column(raw):
        """Views all as float16, and takes the first."""
        halves = raw.view(torch.float16).float()
        return halves[:, 0] * _numbers(raw) + halves[:, 1]

    def squeezed(raw):
        """Squeezes the columns away."""
        scale, least = _ends(raw)
        return scale.squeeze() * _numbers(raw) + least.squeeze()

    def no_column_and_below(raw):
        """Two mistakes at once."""
        halves = raw.view(torch.float16).float()
        return halves[:, 0] * torch.cat([raw[:, 4:] & 15, raw[:, 4:] >> 4]) + halves[:, 1]

    def stacked(raw):
        """Stacks where it should join."""
        scale, least = _ends(raw)
        return scale * torch.stack([raw[:, 4:] & 15, raw[:, 4:] >> 4], dim=1) + least

    def stacked_in_pairs(raw):
        """Stacks along the last axis, and leaves it there."""
        scale, least = _ends(raw)
        return scale * torch.stack([raw[:, 4:] & 15, raw[:, 4:] >> 4], dim=-1) + least

    def rows_for_bytes(raw):
        """Slices the blocks, and means the bytes."""
        scale, least = (raw[i : i + 2].view(torch.float16) for i in (0, 2))
        return scale * torch.cat([raw[4:] & 15, raw[4:] >> 4]) + least

    straight_to_float32 = wrong(
        "Views two bytes as 32 bits.",
        lambda raw: (
            raw[:, 0:2].view(torch.float32) * _numbers(raw) + raw[:, 2:4].view(torch.float32)
        ),
    )
    one_byte_as_float16 = wrong(
        "Views one byte as 16 bits.",
        lambda raw: raw[:, 0:1].view(torch.float16) * _numbers(raw) + raw[:, 1:2],
    )
    next_byte = wrong(
        "Looks for m one byte too early.",
        lambda raw: (
            raw[:, 0:2].view(torch.float16) * _numbers(raw) + raw[:, 1:3].view(torch.float16)
        ),
    )

    def floats_first(raw):
        """Takes the halves of floats."""
        scale, least = _ends(raw)
        bytes_ = raw[:, 4:].float()
        return scale * torch.cat([bytes_ & 15, bytes_ >> 4], dim=1) + least

    def unpacked(raw):
        """Unpacks along the blocks."""
        scale, least = raw[:, :4].view(torch.float16).float()
        return scale * _numbers(raw) + least

    def cat_without_a_list(raw):
        """Gives cat two tensors."""
        scale, least = _ends(raw)
        return scale * torch.cat(raw[:, 4:] & 15, raw[:, 4:] >> 4, dim=1) + least

    def a_byte_by_name(raw):
        """Copies the task's words."""
        scale, least = _ends(raw)
        return scale * torch.cat([byte & 15, byte >> 4], dim=1) + least  # noqa: F821

    # What is right in shape

    def too_many_bytes(raw):
        """Takes m for numbers."""
        scale, least = _ends(raw)
        return scale * torch.cat([raw[:, 2:] & 15, raw[:, 2:] >> 4], dim=1) + least

    def minus_the_steps(raw):
        """Goes down from m."""
        scale, least = _ends(raw)
        return least - scale * _numbers(raw)

    the_cell_above = wrong(
        "Takes d and m of the cell above.", lambda raw: 0.03314 * _numbers(raw) - 0.26514
    )

    only_d_above = wrong(
        "Takes d of the cell above.", lambda raw: 0.03314 * _numbers(raw) + _ends(raw)[1]
    )
    numbers_alone = wrong("Forgets d and m.", _numbers)

    def four_for_four_bits(raw):
        """Takes 4 for the mask of four bits."""
        scale, least = _ends(raw)
        return scale * torch.cat([raw[:, 4:] & 4, raw[:, 4:] >> 4], dim=1) + least

    def by_fifteen(raw):
        """Divides by 15."""
        scale, least = _ends(raw)
        return scale * torch.cat([raw[:, 4:] % 15, raw[:, 4:] // 15], dim=1) + least

    def third_axis(raw):
        """Counts the axes from 1."""
        scale, least = _ends(raw)
        return scale * torch.cat([raw[:, 4:] & 15, raw[:, 4:] >> 4], dim=2) + least

    def number_by_number(raw):
        """Fills 32 numbers, though there are several blocks."""
        (scale, least), n = _ends(raw), torch.zeros(32)
        for i in range(16):
            n[i], n[16 + i] = raw[:, 4 + i] & 15, raw[:, 4 + i] >> 4
        return scale * n + least

    def tensor_of_tensors(raw):
        """Joins tensors by torch.tensor."""
        scale, least = _ends(raw)
        return torch.tensor([scale * (raw[:, 4:] & 15) + least, scale * (raw[:, 4:] >> 4) + least])

    def sum_of_three(raw):
        """Adds where it should multiply."""
        scale, least = _ends(raw)
        return scale + _numbers(raw) + least

    def brain_floats(raw):
        """Reads bfloat16."""
        scale, least = _ends(raw, torch.bfloat16)
        return scale * _numbers(raw) + least

    def shifts_in_place(raw):
        """Writes into the file's bytes."""
        scale, least = _ends(raw)
        low = raw[:, 4:] & 15
        raw[:, 4:] >>= 4
        return scale * torch.cat([low, raw[:, 4:]], dim=1) + least


ON_PAPER = {
    "count_by_hand": {
        "a": 1_327_104,  # as many heads of keys and values as of queries
        "b": 1_769_472,  # a network of two matrices
        "c": 3_538_944,  # forgets the norms
        "d": 162_826_560,  # counts the tied rows twice
    },
}

class my_without_look:
    logits = wrong("Gives logits.",
        lambda model, ids, places, layer: _looks(model, ids, lambda z: z[0, -1], queries=6, keys=places, layers=layer))
    of_all_tokens = wrong("Gives a row for each token.",
        lambda model, ids, places, layer:
            _looks(model, ids, lambda z: z[0].softmax(-1), queries=6, keys=places, layers=layer))
    of_the_first_token = wrong("Reads the first token's row.",
        lambda model, ids, places, layer:
            _looks(model, ids, lambda z: z[0, 0].softmax(-1), queries=6, keys=places, layers=layer))
    for_everybody = wrong("Hides the places from all tokens.",
        lambda model, ids, places, layer: _looks(model, ids, keys=places, layers=layer))
    in_every_layer = wrong("Hides the places in all layers.",
        lambda model, ids, places, layer: _looks(model, ids, queries=6, keys=places))
    at_nothing = wrong("Lets the last token look at nothing in this layer.",
        lambda model, ids, places, layer: _looks(model, ids, queries=6, layers=layer))
    exchanged = wrong("Lets the places not look at the last token.",
        lambda model, ids, places, layer: _looks(model, ids, queries=places, keys=6, layers=layer))
    first_place = wrong("Hides the first place only.",
        lambda model, ids, places, layer: _looks(model, ids, queries=6, keys=places[0], layers=layer))
    counted_back = wrong("Counts the last token as −1.",
        lambda model, ids, places, layer: _looks(model, ids, queries=-1, keys=places, layers=layer))

    def outside(model, ids, places, layer):
        """Runs the model after the block."""
        with course_utils.intervene(model) as acts:
            acts.knock_out(queries=6, keys=places, layers=layer)
        return model(ids)[0, -1].softmax(-1)

    def left_open(model, ids, places, layer):
        """Opens the block by hand and never closes it."""
        acts = course_utils.intervene(model).__enter__()
        acts.knock_out(queries=6, keys=places, layers=layer)
        return model(ids)[0, -1].softmax(-1)


def _looks(model, ids, read=lambda z: z[0, -1].softmax(-1), **forbidden):
    with course_utils.intervene(model) as acts:
        acts.knock_out(**forbidden)
        return read(model(ids))


ANSWERS = {
    "logits": ("sum to", "softmax"),
    "counted_back": ("numbers counted from 0", "At which position stands"),
    "for_everybody": ("no look at [2] in layer 1", "Who asks?"),
    "in_every_layer": ("no look at [2] in layer 1", "In which layer?"),
    "at_nothing": ("no look at [2] in layer 1", "At what may it not look?"),
    "exchanged": ("no look at [2] in layer 1", "the last token is the query"),
    "first_place": ("no look at [3, 4] in layer 2", "How many places"),
    "outside": ("no look at [2] in layer 1", "inside the block"),
    "two_parts_to_go": (
        "attention_norm and feed_forward_norm: nothing",
        "takes the place of `...`",
    ),
    "without_super": ("has the parameters", "`super().__init__()`"),
    "no_module": ("expected a module", "class MyBlock(nn.Module)"),
    "calls_the_library": ("it uses EncoderLayer", "step by step"),
    "one_norm_for_both": ("missing: feed_forward_norm.weight", "How many norms"),
    "layer_norm": ("too many: attention_norm.bias", "RMSNorm only multiplies"),
    "biases": ("too many: attention.key_proj.bias", "`bias=False`"),
    "a_head_of_keys_for_each_query": ("has shape (24, 24), expected (8, 24)", "`num_kv_heads`"),
    "plain_network": ("missing: feed_forward.down.weight", "Take `SwiGLU`"),
    "chapter_13": ("too many", "Take `SwiGLU`"),
    "four_times_as_wide": ("has shape (96, 24), expected (40, 24)", "`ffn_dim`"),
    "other_names": ("too many: norm1.weight", "How are your four parts called"),
    "only_the_parts": ("`forward` gives nothing yet", "end with `return`"),
    "by_place": ("takes 3 positional arguments", "`num_kv_heads=num_kv_heads`"),
    "encode_when_made": ("keyword argument 'encode'", "belong to its call in `forward`"),
    "heads_first": ("has the parameters", "A question mark behind its name"),
    "norm_without_bias": ("keyword argument 'bias'", "A question mark behind its name"),
    "gated_with_activation": ("keyword argument 'activation'", "A question mark behind its name"),
    "kv_heads": ("keyword argument 'kv_heads'", "by name `num_kv_heads="),
    "swiglu_for_an_activation": ("is unknown", "A question mark behind its name"),
    "norm_of_the_network": ("has shape (40,), expected (24,)", "features of the stream"),
    "sizes_exchanged": ("a positive, even size", "Which arguments does a `Rotation` take"),
    "start_by_place": ("takes 3 positional arguments", "`start=` and `base=`"),
    "only_the_length": ("required positional argument: 'dim'", "then the size of a head"),
    "names_head_dim": ("keyword argument 'head_dim'", "`start=` and `base=`"),
    "switched_on": ("of the shape of x", "hand it to the attention as `encode=`"),
    "rotation_for_a_mask": ("attn_mask", "by name `is_causal=`, `cache=` and `encode=`"),
    "the_class_itself": ("required positional argument: 'dim'", "Make one"),
    "turned_as_wide_as_x": ("not callable", "Hand on the rotation itself"),
    "always_a_cache": ("has no attribute 'length'", "when there is no cache? 0"),
    "len_of_the_cache": ("has no len", "when there is no cache? 0"),
    "base_not_kept": ("'base' is not defined", "`self.base = …`"),
    "base_not_set": ("has no attribute 'base'", "Where is `base` known"),
    "sizes_in_the_call": ("keyword argument 'num_kv_heads'", "the attention's making"),
    "rotation_for_encode": ("keyword argument 'rotation'", "`encode=`"),
    "queries_only": ("of the shape of x", "three times the same y"),
    "looks_ahead": ("when a later token changes", "`is_causal`"),
    "norm_after": ("pass unchanged", "add to x itself"),
    "passes_on_the_norm": ("pass unchanged", "add to x itself"),
    "without_residuals": ("pass unchanged", "Who adds x"),
    "adds_x_twice": ("pass unchanged", "How often do you add x"),
    "reads_the_stream": ("its own norm", "`self.attention_norm(x)`"),
    "network_without_norm": ("its own norm", "`self.feed_forward_norm(x)`"),
    "norms_exchanged": ("its own norm", "yours are exchanged"),
    "first_norm_twice": ("its own norm", "one of its own"),
    "side_by_side": ("its own norm", "on the new x"),
    "subtracts_the_mean": ("its own norm", "subtract the mean"),
    "no_rotation": ("by their positions", "hand it to the attention as `encode=`"),
    "turns_queries_only": ("by their positions", "Queries *and* keys"),
    "one_position_for_all": ("by their positions", "stand anywhere"),
    "base_forgotten": ("as slowly as `base` says", "still say *Paris*"),
    "base_written_down": ("as slowly as `base` says", "Is 100,000 written"),
    "epsilon_forgotten": ("attention_norm, small numbers", "`eps=1e-5`"),
    "epsilon_in_one_norm": ("feed_forward_norm, small numbers", "`eps=1e-5`"),
    "takes_no_cache": ("on a cache", "`def forward(self, x, cache=None):`"),
    "turns_the_stream": ("by their positions", "Its *heads*"),
    "forgets_the_cache": ("the cache holds 0 tokens after 6", "`cache=cache`"),
    "begins_again": ("pieces of 3, 2 and 1", "begin at position 0"),
    "counts_too_early": ("on a cache", "`start=cache.length`"),
    "looks_ahead_in_a_piece": ("pieces of 3, 2 and 1", "right with a cache, too"),
    "adds_in_place": ("leaves x as it was", "write `x = x + …`"),
    "cuts_the_way_back": ("gradients", "the way back"),
    "never_trains": ("no gradient reaches the stream", "the way back"),
    "halves_interleaved": ("low halves as numbers 0 to 15", "Number 16, not number 1"),
    "high_halves_first": ("low halves as numbers 0 to 15", "Which half of a byte"),
    "ends_exchanged": ("the least value where all numbers are 0", "Those of the scale d"),
    "subtracts": ("the least value where all numbers are 0", "add it"),
    "multiplies_the_sum": ("the least value where all numbers are 0", "What is multiplied by d"),
    "least_forgotten": (
        "the least value where all numbers are 0",
        "What does the number 0 stand for",
    ),
    "q4_0": ("the least value where all numbers are 0", "subtracts 8"),
    "q4_0_in_bytes": ("the least value where all numbers are 0", "subtracts 8"),
    "whole_numbers": ("the least value where all numbers are 0", "reads a whole number"),
    "one_byte_each": ("the least value where all numbers are 0", "one float of 16 bits"),
    "joined_in_bytes": ("the least value where all numbers are 0", "one float of 16 bits"),
    "not_shifted": ("goes up by the scale", "`byte >> 4`"),
    "divided": ("goes up by the scale", "`byte >> 4`"),
    "all_twenty_bytes": ("got shape (3, 40)", "begin with `raw[:, 4:]`"),
    "flat": ("got shape (96,)", "How many rows has raw"),
    "only_the_first_block": ("got shape (1, 32)", "How many rows has raw"),
    "low_halves_only": ("got shape (3, 16)", "How many numbers does a byte hold"),
    "as_the_cell_above": ("converted to Scalar", "need exactly one number"),
    "python_float": ("gives 32 numbers", "keep d and m as columns"),
    "half_and_half_below": ("got shape (6, 16)", "below each other"),
    "no_column": ("gives 32 numbers", "as columns, (blocks, 1)"),
    "squeezed": ("gives 32 numbers", "as columns, (blocks, 1)"),
    "no_column_and_below": ("gives 32 numbers", "as columns, (blocks, 1)"),
    "too_many_bytes": ("got shape (3, 36)", "begin with `raw[:, 4:]`"),
    "minus_the_steps": ("goes up by the scale", "Where does the number 15 lie"),
    "the_cell_above": ("the least value where all numbers are 0", "reads d and m from `raw`"),
    "only_d_above": ("goes up by the scale", "What in your function reads d from"),
    "numbers_alone": (
        "the least value where all numbers are 0",
        "What does the number 0 stand for",
    ),
    "four_for_four_bits": ("goes up by the scale", "in bits 1111"),
    "by_fifteen": ("goes up by the scale", "The remainder by 16"),
    "tensor_of_tensors": ("gives 32 numbers", "need exactly one number"),
    "sum_of_three": ("the least value where all numbers are 0", "*multiplied*"),
    "brain_floats": ("the least value where all numbers are 0", "not bfloat16"),
    "first_block_for_all": ("its own scale", "Each block has its own"),
    "half_precision": ("float32", "Before they are multiplied"),
    "half_precision_made_whole": ("float32", "Before they are multiplied"),
    "shifts_in_place": ("the bytes are not changed", "write into the bytes"),
}
