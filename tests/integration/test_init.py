"""``dpmask init``: the ready jobs and cluster files, copied; what is there stays as it is."""

import os
import stat

from dpmask.job.shipped import shipped_root


def test_the_shipped_files_are_copied_and_nothing_is_overwritten(place, monkeypatch):
    monkeypatch.chdir(place.folder)
    (place.folder / "office/jobs").mkdir(parents=True)
    own = place.folder / "office/jobs/README.md"
    own.write_text("ours")
    ended = place.dpmask("init", "office")
    assert ended.code == 0, ended.err
    assert own.read_text() == "ours"
    assert f"{os.path.join('office', 'jobs', 'README.md')} is there already, and was left as it is" in ended.out
    copied = {str(path.relative_to(place.folder / "office")) for path in (place.folder / "office").rglob("*.*")}
    shipped = {
        str(path.relative_to(shipped_root()))
        for name in ("jobs", "cluster_config")
        for path in (shipped_root() / name).rglob("*.*")
        if "__pycache__" not in str(path)
    }
    assert copied == shipped
    assert os.stat("office/jobs/pipelines/run.sh").st_mode & stat.S_IXUSR
    assert "To begin: cd office && dpmask generate lake/" in ended.out
    again = place.dpmask("init", "office")
    assert (again.code, "Wrote 0 files" in again.out) == (0, True)
    assert place.dpmask("init", "office/jobs/README.md").code == 2


def test_the_wheel_has_them():
    """They lie outside the package: the build is told to take them along, and the image to have them when it builds."""
    import tomllib

    root = shipped_root()
    built = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert built["force-include"] == {name: f"dpmask/shipped/{name}" for name in ("jobs", "cluster_config")}
    text, let_in = (root / "docker/Dockerfile").read_text(), (root / "docker/Dockerfile.dockerignore").read_text()
    for name in built["force-include"]:
        assert f"COPY {name} {name}\n" in text.split("pip wheel")[0]
        assert f"!{name}\n" in let_in
