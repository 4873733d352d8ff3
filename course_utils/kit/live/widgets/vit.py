"""The vision transformer as a widget: draw or upload a picture, read what it says, and where its class token looks."""

from course_utils.kit.live.widget import Live


class VisionTransformer(Live):
    """A live vision transformer, shown as the last line of a cell."""

    kind = "vit"
    label = "Live vision transformer"
    models = ("vit", "vit_patch14", "vit_patch4")


def vit() -> VisionTransformer:
    """The course's stored vision transformers: draw, upload or choose a picture of 28 × 28 pixels."""
    return VisionTransformer()
