"""Marks that several tests share."""

import pytest

# Tables of these tests have gaps at random, on which `missingness="informative"` rightly warns; what they are
# about is another matter, and warnings are errors.
INFORMATIVE_BY_HAND = pytest.mark.filterwarnings("ignore:missingness='informative' uses the gaps:UserWarning")
