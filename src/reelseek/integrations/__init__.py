"""Drop-ins: LeRobot's, GR00T's and openpi's own code, reading through reelseek.

Importing this imports none of those packages, and changes nothing; each module's ``enable`` does.
"""

from reelseek.integrations import gr00t, lerobot, openpi

__all__ = ["gr00t", "lerobot", "openpi"]
