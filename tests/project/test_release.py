"""What can be seen before a release without building anything; `make release-check` does the rest."""

import shutil
import tarfile
from datetime import date

import pytest

from tools import release

TODAY = date(2026, 12, 1)
NO_REPOSITORY = shutil.which("git") is None or not (release.ROOT / ".git").exists()


@pytest.mark.skipif(NO_REPOSITORY, reason="not a clone")
class TestSdist:
    def test_it_holds_what_builds_tests_and_explains_the_package_and_nothing_else(self):
        files = release.committed_files()
        assert release.stray_problems(files) == []
        assert not any(name.startswith((".", "build/")) for name in files)

    def test_every_source_is_in_it(self):
        files = set(release.committed_files())
        kinds = {".py", ".pyi", ".pyx", ".pxd", ".h", ".inc", ".build"}
        done = release.subprocess.run(
            ["git", "ls-files", "src", "tests", "meson.build", "pyproject.toml"],
            cwd=release.ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        listed = [name for name in done.stdout.splitlines() if release.Path(name).suffix in kinds]
        committed = release.subprocess.run(
            ["git", "ls-tree", "-r", "--name-only", "HEAD"],
            cwd=release.ROOT, capture_output=True, text=True, check=True,
        ).stdout.splitlines()  # fmt: skip
        assert len(listed) > 300
        assert set(listed) & set(committed) <= files

    def test_what_was_built_is_compared(self, tmp_path, monkeypatch):
        monkeypatch.setattr(release, "committed_files", lambda: {"a.py": 1, "b.py": 1})
        sdist = tmp_path / "scikit_kpod-1.2.3.tar.gz"
        with tarfile.open(sdist, "w:gz") as archive:
            for name in ("a.py", "PKG-INFO", "notes.txt"):
                (tmp_path / "file").write_text("")
                archive.add(tmp_path / "file", f"scikit_kpod-1.2.3/{name}")
        assert release.built_problems(tmp_path, "1.2.3") == [
            f"{tmp_path.name}: no wheel.",
            "scikit_kpod-1.2.3.tar.gz: lacks b.py.",
            "scikit_kpod-1.2.3.tar.gz: holds notes.txt, which is not committed.",
        ]
        (tmp_path / "scikit_kpod-1.2.2-cp311-cp311-linux_x86_64.whl").write_text("")
        assert any("is not of version 1.2.3" in said for said in release.built_problems(tmp_path, "1.2.3"))


@pytest.mark.parametrize(
    "name", [".DS_Store", "notes.txt", "src/kpod/core.1234", "docs/data.bin", "build/x.py"]
)
def test_strays_are_named(name):
    assert [name in said for said in release.stray_problems({name: 1})] == [True]


def test_large_files_are_named():
    assert release.stray_problems({"docs/x.csv": 1}) == []
    assert "bytes" in release.stray_problems({"docs/x.csv": release.LARGEST + 1})[0]


@pytest.mark.parametrize(
    ("version", "wrong"), [("0.2.0", False), ("0.2.0.dev0", True), ("0.2", True), ("0.2.0rc1", True)]
)
def test_a_version_to_release(version, wrong):
    assert bool(release.version_problems(version)) == wrong


@pytest.mark.parametrize(
    ("heading", "said"),
    [
        ("0.2.0 - 2026-12-01", None),
        ("0.2.0 - 2026-12-02", "has not come"),
        ("0.2.0 - 2026-13-01", "no date"),
        ("0.2.0", "begins with"),
        ("0.1.9 - 2026-12-01", "begins with"),
        ("Unreleased", "begins with"),
    ],
)
def test_the_changelog_has_a_dated_section(heading, said):
    text = f"# Changelog\n\n## {heading}\n\n## 0.1.0\n"
    found = release.changelog_problems(text, "0.2.0", TODAY)
    assert (found == []) if said is None else (said in found[0])


def test_no_other_file_states_another_version():
    version = release.version_of(release.text_of("meson.build"))
    assert release.citation_problems(release.text_of("CITATION.cff"), version) == []
    assert release.recipe_problems(release.text_of("conda/recipe.yaml")) == []
    assert release.citation_problems('version: "0.1.0"\n', "0.2.0")
    assert release.recipe_problems("version: 0.1.0")


def test_addresses_stand_in_one_place():
    urls = dict.fromkeys(release.ADDRESSES, "https://example.org/x")
    assert release.address_problems(urls, {"a": ""}) == []
    assert release.address_problems(urls, {"a": "see https://example.org/x"})
    assert "lacks Repository" in release.address_problems({}, {})[0]


def test_links_of_the_readme_work_on_a_package_index():
    readme = "[a](docs/a.md) ![b](docs/b.png) [c](https://c.org) [d](#d)"
    assert release.link_problems(readme)
    found = release.absolute(readme, "https://example.org/kpod/", "0.2.0")
    assert found == (
        "[a](https://example.org/kpod/blob/v0.2.0/docs/a.md) "
        "![b](https://example.org/kpod/raw/v0.2.0/docs/b.png) "
        "[c](https://c.org) [d](#d)"
    )
    assert release.link_problems(found) == []
    whole = release.absolute(release.text_of("README.md"), "https://example.org/kpod", "0.2.0")
    assert release.relative_links(whole) == []


@pytest.mark.skipif(not release.workflows(), reason="not a clone")
def test_actions_are_pinned_by_hash():
    for name, text in release.workflows().items():
        assert release.actions(text)
        assert release.action_problems(name, text) == []
    assert release.action_problems("x", "- uses: actions/checkout@v5")
    publishing = release.workflows()["wheels.yml"].partition("  publish:")[2]
    assert "id-token: write" in publishing
    assert "attestations: true" in publishing
    assert "password" not in publishing.replace("no password", "")


def test_a_contact_for_vulnerabilities():
    assert "Security" in release.ADDRESSES
    assert 'link "Security"' in release.text_of("SECURITY.md")


@pytest.mark.skipif(NO_REPOSITORY, reason="not a clone")
def test_a_tree_that_is_not_ready_is_refused_and_what_is_left_is_said(monkeypatch, capsys):
    monkeypatch.setattr(release, "problems", lambda today: ["meson.build: not yet."])
    with pytest.raises(SystemExit, match="1 things to mend"):
        release.main([])
    assert "Left to a person" in capsys.readouterr().out
    release.main(["--rehearse"])
    assert "meson.build: not yet." in capsys.readouterr().out
