"""The benchmark's model: SigLIP's vision encoder, and a head that finds the actions in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reelseek.bench._torchvision_loading import import_peer

if TYPE_CHECKING:
    from torch import Tensor

SIZES = {
    "micro": {"hidden_size": 32, "layers": 1, "heads": 1, "patch_size": 56},
    "tiny": {"hidden_size": 96, "layers": 2, "heads": 3, "patch_size": 32},
    "small": {"hidden_size": 384, "layers": 6, "heads": 6, "patch_size": 16},
    "base": {"hidden_size": 768, "layers": 12, "heads": 12, "patch_size": 16},
    "so400m": {"hidden_size": 1152, "layers": 27, "heads": 16, "patch_size": 14},
}
"""Encoders by name: ``micro``'s steps take a CPU a few milliseconds, as larger ones take a GPU;
``base`` and ``so400m`` have the sizes of the published SigLIPs."""
IMAGE_SIZE = 224
"""The side of the encoder's pictures, in pixels."""


def siglip_encoder(name: str = "tiny") -> Any:
    """transformers' SiglipVisionModel, built from a config, with random weights.

    It loads beside a torchvision that doesn't fit the torch, which it has no use for.

    Args:
        name: ``micro`` or ``tiny`` for a CPU, ``small``, ``base`` or ``so400m``.

    Returns:
        The model; ``encoder(pixel_values).pooler_output`` is (N, hidden_size).

    Raises:
        DependencyError: transformers isn't installed.
        ValueError: There is no encoder of that name.
    """
    if name not in SIZES:
        raise ValueError(f"no encoder {name!r}: choose one of {', '.join(SIZES)}")
    size = SIZES[name]
    configuration = import_peer("transformers.models.siglip.configuration_siglip")
    modeling = import_peer("transformers.models.siglip.modeling_siglip")
    return modeling.SiglipVisionModel(
        configuration.SiglipVisionConfig(
            hidden_size=size["hidden_size"],
            intermediate_size=4 * size["hidden_size"],
            num_hidden_layers=size["layers"],
            num_attention_heads=size["heads"],
            patch_size=size["patch_size"],
            image_size=IMAGE_SIZE,
        )
    )


def inverse_dynamics_model(name: str, num_views: int, horizon: int, action_dim: int) -> Any:
    """An inverse-dynamics model: pictures of before and after to the actions in between.

    Args:
        name: Of the encoder.
        num_views: V pictures of a sample: cameras times frames.
        horizon: T actions.
        action_dim: D numbers of an action.

    Returns:
        A ``torch.nn.Module`` from (B, V, 3, 224, 224) to (B, T, D).
    """
    from torch import nn

    encoder = siglip_encoder(name)
    width = encoder.config.hidden_size

    class InverseDynamics(nn.Module):  # type: ignore[misc] # torch has no types here
        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder
            self.head = nn.Sequential(
                nn.Linear(num_views * width, 256), nn.GELU(), nn.Linear(256, horizon * action_dim)
            )

        def forward(self, pixels: Tensor) -> Tensor:
            features = self.encoder(pixel_values=pixels.flatten(0, 1)).pooler_output
            actions: Tensor = self.head(features.unflatten(0, pixels.shape[:2]).flatten(1))
            return actions.unflatten(1, (horizon, action_dim))

    return InverseDynamics()
