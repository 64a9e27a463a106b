"""Examples in docstrings and pages run in a folder of their own, since some write files."""

import pytest


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(request, tmp_path, monkeypatch):
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)
