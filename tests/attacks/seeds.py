"""A small seed: whoever finds it by the public fingerprint of the key draws all the noise again."""

from dpmask.engine.draws import make_key


def attack(manifest, seeds):
    """The seed of a release, if it is one of these: whose key has the fingerprint that the manifest shows."""
    return next((seed for seed in seeds if _fingerprint(seed) == manifest["key"]["fingerprint"]), None)


def _fingerprint(seed):
    return make_key("seed", seed=seed).fingerprint
