"""Is this tree ready to be released? python -m tools.release; make release-check adds the slow checks.

Each check returns what is wrong, in sentences. What no program can decide is printed last, for a person.
"""

import argparse
import io
import re
import subprocess
import sys
import tarfile
import tomllib
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOP = {
    "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md",
    "benchmarks", "conda", "conftest.py", "docs", "examples", "meson.build", "paper", "pyproject.toml",
    "src", "tests", "tools",
}  # fmt: skip
"""What an sdist holds at its top: what builds the package, tests it and explains it."""
SUFFIXES = {
    ".R", ".build", ".c", ".cff", ".css", ".csv", ".h", ".html", ".inc", ".js", ".md", ".pxd", ".png",
    ".py", ".pyi", ".pyx", ".rst", ".svg", ".toml", ".txt", ".typed", ".yaml",
}  # fmt: skip
NAMES = {"LICENSE", "Makefile"}
LARGEST = 6_000_000
ADDRESSES = ("Repository", "Documentation", "Changelog", "Issues", "Security")
"""The entries of project.urls that follow once the repository has an address."""

LEFT = """Left to a person:
- Read the changelog's section and docs/upgrading.md as a user would.
- Run the benchmarks that docs/speed.md reports on an idle machine (make bench), and `python -m paper run`
  for methods whose packages changed; then make docs.
- Set up the project at the package index: a trusted publisher for .github/workflows/wheels.yml and the
  environment `pypi`, and required reviewers for that environment.
- Compare the hashes in .github/workflows with the releases that stand beside them.
- Switch on private vulnerability reports where the repository is hosted; try the address in project.urls.
- Tag `v{version}`, push the tag, watch the workflow; then install what came out in an empty environment.
- conda: send the recipe with the sdist's address and hash."""


def text_of(name):
    return (ROOT / name).read_text()


def pyproject():
    return tomllib.loads(text_of("pyproject.toml"))


def version_of(meson):
    return re.search(r"^\s*version: '([^']+)'", meson, re.M)[1]


def version_problems(version):
    return (
        []
        if re.fullmatch(r"\d+\.\d+\.\d+", version)
        else [f"meson.build: {version} is not a version to release."]
    )


def changelog_problems(changelog, version, today):
    """The newest section is that of the version, with its date."""
    first, *_ = re.findall(r"^## (.+)$", changelog, re.M) or [""]
    found = re.fullmatch(r"(\S+) - (\d{4}-\d{2}-\d{2})", first)
    if not found or found[1] != version:
        return [f'CHANGELOG.md: begins with "{first}", not with "{version} - {today}".']
    try:
        day = date.fromisoformat(found[2])
    except ValueError:
        return [f"CHANGELOG.md: {found[2]} is no date."]
    return [f"CHANGELOG.md: {day} has not come yet."] if day > today else []


def citation_problems(citation, version):
    """It need not name a version; if it does, this one."""
    return [
        f"CITATION.cff: version {said}, not {version}."
        for said in re.findall(r'^version: "?([^"\n]+)"?$', citation, re.M)
        if said != version
    ]


def recipe_problems(recipe):
    line = 'version: ${{ env.get("KPOD_VERSION") }}'
    return (
        []
        if line in recipe
        else ["conda/recipe.yaml: the version is to be that of `make conda`, from meson.build."]
    )


def upgrade_problems(page, version):
    return [] if version in page else [f"docs/upgrading.md: does not speak of {version}."]


def address_problems(urls, texts):
    """Addresses of our own stand in project.urls, all of them, and nowhere else but in the README's links."""
    lacking = [name for name in ADDRESSES if name not in urls]
    said = [f"pyproject.toml: project.urls lacks {', '.join(lacking)}."] if lacking else []
    own = urls.get("Repository")
    return said + [
        f"{name}: repeats {own}, of project.urls." for name, text in texts.items() if own and own in text
    ]


def relative_links(markdown):
    found = re.findall(r"\]\(([^)\s]+)\)", markdown)
    return [target for target in found if "://" not in target and not target.startswith(("#", "mailto:"))]


LIVE_REPORT = "_static/wine-report.html"
PICTURE = "(docs/images/report.png)](docs/pictures-and-report.md)"


def absolute(markdown, repository, version, documentation=None):
    """A README whose links work on a package index: to the files of this version.

    The picture of a report leads to the live one, where there is a site that has it.
    """
    if documentation is not None:
        live = f"(docs/images/report.png)]({documentation.rstrip('/')}/{LIVE_REPORT})"
        markdown = markdown.replace(PICTURE, live)
    base = f"{repository.rstrip('/')}/raw/v{version}/", f"{repository.rstrip('/')}/blob/v{version}/"

    def link(match):
        target = match[1]
        if target not in relative_links(match[0]):
            return match[0]
        return f"]({base[not target.endswith(('.png', '.svg'))]}{target})"

    return re.sub(r"\]\(([^)\s]+)\)", link, markdown)


def link_problems(readme):
    found = relative_links(readme)
    return [f"README.md: {len(found)} links that lead nowhere on a package index, such as {found[0]}; "
            "`python -m tools.release --links` makes them absolute."] if found else []  # fmt: skip


def actions(workflow):
    """Each action used, and at which reference."""
    return re.findall(r"uses: ([\w./-]+)@(\S+)", workflow)


def action_problems(name, workflow):
    return [
        f"{name}: {action}@{reference} is not pinned by its hash."
        for action, reference in actions(workflow)
        if not re.fullmatch(r"[0-9a-f]{40}", reference)
    ]


def committed_files():
    """What `meson dist` packs: the files of the last commit, less those that .gitattributes leaves out."""
    done = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        return {member.name: member.size for member in archive if member.isfile()}


def stray_problems(files):
    """Files, with their sizes, that nobody expects in an sdist."""
    said = []
    for name, size in sorted(files.items()):
        path = Path(name)
        known = path.suffix in SUFFIXES or path.name in NAMES or path.parent == Path("tests/data")
        if path.parts[0] not in TOP or not known:
            said.append(
                f"sdist: {name} is a stray; leave it out in .gitattributes, or list it in tools/release.py."
            )
        elif size > LARGEST:
            said.append(f"sdist: {name} has {size:,} bytes.")
    return said


def sdist_problems(sdist, version):
    """An sdist that was built holds what was committed, and its metadata."""
    top = f"scikit_kpod-{version}"
    with tarfile.open(sdist) as archive:
        held = {member.name.removeprefix(f"{top}/") for member in archive if member.isfile()}
    committed = set(committed_files()) | {"PKG-INFO"}
    return [
        *(f"{sdist.name}: lacks {name}." for name in sorted(committed - held)),
        *(f"{sdist.name}: holds {name}, which is not committed." for name in sorted(held - committed)),
    ]


def built_problems(folder, version):
    """What `make wheels` left in dist/."""
    sdists, wheels = sorted(folder.glob("*.tar.gz")), sorted(folder.glob("*.whl"))
    said = [f"{folder.name}: {len(sdists)} sdists, where there is to be one."] if len(sdists) != 1 else []
    said += [] if wheels else [f"{folder.name}: no wheel."]
    for file in [*sdists, *wheels]:
        if not re.match(rf"scikit_kpod-{re.escape(version)}[-.]", file.name):
            said.append(f"{file.name}: is not of version {version}.")
        elif file in sdists:
            said += sdist_problems(file, version)
    return said


def tree_problems(version):
    def git(*arguments):
        return subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout

    said = ["git: there are changes that are not committed."] if git("status", "--porcelain").strip() else []
    return said + (
        [f"git: the tag v{version} is there already."] if git("tag", "--list", f"v{version}").strip() else []
    )


def workflows():
    return {path.name: path.read_text() for path in sorted((ROOT / ".github/workflows").glob("*.yml"))}


def problems(today):
    """All that can be seen in seconds."""
    version, urls = version_of(text_of("meson.build")), pyproject()["project"]["urls"]
    elsewhere = ("CITATION.cff", "CONTRIBUTING.md", "SECURITY.md", "conda/recipe.yaml")
    return [
        *version_problems(version),
        *changelog_problems(text_of("CHANGELOG.md"), version, today),
        *citation_problems(text_of("CITATION.cff"), version),
        *recipe_problems(text_of("conda/recipe.yaml")),
        *upgrade_problems(text_of("docs/upgrading.md"), version.partition(".dev")[0]),
        *address_problems(urls, {name: text_of(name) for name in elsewhere}),
        *link_problems(text_of("README.md")),
        *(said for name, text in workflows().items() for said in action_problems(name, text)),
        *stray_problems(committed_files()),
        *tree_problems(version),
    ]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument(
        "--built", type=Path, metavar="FOLDER", help="look at the sdist and wheels in it, too"
    )
    parser.add_argument("--rehearse", action="store_true", help="say what is wrong, and succeed all the same")
    parser.add_argument("--links", action="store_true", help="make the links of README.md absolute, and end")
    options = parser.parse_args(arguments)
    version = version_of(text_of("meson.build"))
    if options.links:
        repository = pyproject()["project"]["urls"].get("Repository")
        if repository is None:
            sys.exit("pyproject.toml: project.urls has no Repository to which the links could lead.")
        site = pyproject()["project"]["urls"].get("Documentation")
        (ROOT / "README.md").write_text(absolute(text_of("README.md"), repository, version, site))
        return
    found = problems(date.today())
    found += built_problems(options.built, version) if options.built else []
    for said in found:
        print(said)
    print(LEFT.format(version=version))
    if found and not options.rehearse:
        sys.exit(f"{len(found)} things to mend before {version} is released.")


if __name__ == "__main__":
    main()
