"""What the proof shares: where golden data and native modules lie, hypothesis profiles, the `slow` mark."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

from golden_data import golden_folder
from native_modules import ABSENT, variants

# A differential example checks every variant at once, so `max_examples` is also the number per variant.
for name, examples in {"quick": 200, "ci": 2_000, "large": 50_000}.items():
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--proof",
        choices=["quick", "ci", "large"],
        default=os.environ.get("LADDER_PROOF", "ci"),
        help="differential examples per variant: quick 200, ci 2,000, large 50,000",
    )
    parser.addoption("--slow", action="store_true", help="run also the tests marked slow")


def pytest_configure(config: pytest.Config) -> None:
    # A shell's background job ignores Ctrl-C, and so would every program that a test interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "slow: minutes of work; runs with --slow")
    settings.load_profile(config.getoption("--proof"))
    # Without built variants most of the proof is skipped: fine at a desk, a false pass in CI.
    if os.environ.get("LADDER_REQUIRE_NATIVE") and not variants():
        pytest.exit(ABSENT, returncode=2)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="slow: runs with --slow"))


@pytest.fixture(scope="session")
def golden() -> Path:
    folder = golden_folder()
    if not (folder / "cases.json").is_file():
        pytest.skip(f"no golden data at {folder}: set LADDER_SHARED to the folder that holds golden/")
    return folder
