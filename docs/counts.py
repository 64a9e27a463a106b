"""What docs/testing.md says of the tests, counted in the tests themselves."""

import subprocess
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).parent.parent


def collected(*arguments):
    """How many tests pytest finds."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return sum("::" in line for line in done.stdout.splitlines())


def odd_calls():
    """Odd inputs of tests/inputs/test_odd_inputs.py, and calls that get one."""
    from scipy import sparse

    from tests.inputs import test_odd_inputs as odd

    refused = (len(odd.NOT_A_TABLE) + len(odd.NOT_NUMBERS)) * len(odd.ALL_CALLS)
    with warnings.catch_warnings(action="ignore"):  # of np.matrix
        tables = [make() for make, _ in odd.A_TABLE.values()]
    both = odd.CALLS | odd.DENSE_CALLS
    read = sum(len((odd.CALLS if sparse.issparse(table) else both).keys() - odd.SLOW) for table in tables)
    return len(odd.NOT_A_TABLE) + len(odd.NOT_NUMBERS) + len(odd.A_TABLE), refused + read


def rows():
    """What is tried, how often in every run of the suite, and where."""
    from tests.campaigns import damage, mutants
    from tests.engine import test_checkpoint
    from tests.files import test_damage
    from tests.inputs import test_inputs
    from tests.kernels import test_fuzz, test_hostile

    n_checkpoints = test_checkpoint.N_FLIPS + len(test_checkpoint.ODD)
    n_models = len(list((ROOT / "tests/data").glob("*.kpod")))
    kinds = sum(map(len, damage.KINDS.values()))
    n_inputs, n_calls = odd_calls()
    random_tables = sum(
        test._hypothesis_internal_use_settings.max_examples
        for test in (test_fuzz.test_result_or_clean_error, test_fuzz.test_labels_are_those_of_nearest_centers)
    )
    contract = collected("tests/estimators", "tests/columns", "-k", "test_scikit_learn_contract")
    kernels = collected("tests/kernels/test_kernels.py")
    return [
        ("kernel cases against the NumPy oracle", kernels, "test_kernels.py"),
        ("random tables, each fit checked against brute force", random_tables, "test_fuzz.py"),
        ("scikit-learn's estimator checks", contract, "test_estimator_checks.py and two more"),
        ("kinds of tables that must give the same clustering", len(test_inputs.CONTAINERS), "test_inputs.py"),
        ("random sequences of hostile calls", test_hostile.N_CASES, "test_hostile.py"),
        ("odd inputs", n_inputs, "test_odd_inputs.py"),
        ("calls of public functions with one of these", f"{n_calls:,}", "test_odd_inputs.py"),
        (f"damaged files ({kinds} kinds)", f"{kinds * test_damage.CASES:,}", "test_damage.py"),
        ("odd or damaged checkpoints", n_checkpoints, "test_checkpoint.py"),
        ("model files of earlier versions that still open", n_models, "test_modelfile.py"),
        ("deliberate errors in the kernels (not in every run)", len(mutants.KERNELS), "mutants.py"),
    ]  # fmt: skip
