"""Headless Chromium on a live Dagster UI: open a page, wait for its text, save a picture.

Needs Debian's `chromium` and `chromium-driver`. Pictures are left in the folder that GRAPHRAG_SCREENSHOTS names, if it
is set.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphrag_pipeline_tests.support.dagster.live_dagster import wait_until

_ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --enable-unsafe-swiftshader"
)
_PATIENCE_S = 180  # for a page on a busy machine
_SETTLE_S = 3  # until a page knows the state of a switch
_MATERIALIZE_ALL = (
    "//button[contains(., 'Materialize all')]",
    "//button[.='All']",
    "//button[contains(., 'Launch backfill') and not(@disabled)]",
)
"""The clicks, in the asset graph, that index everything."""


@contextmanager
def running_chromium(width: int = 1500, height: int = 1100) -> Iterator[Any]:
    """Start a browser with a window of this size in pixels.

    Raises:
        RuntimeError: it is not installed.
    """
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        raise RuntimeError("needs Debian's packages: apt-get install chromium chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = str(shutil.which("chromium"))
    for argument in (*_ARGUMENTS.split(), f"--window-size={width},{height}"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def show(browser: Any, address: str, *expected: str) -> str:
    """Open a page and wait until it shows every expected text."""
    browser.get(address)
    return wait_for_text(browser, *expected)


def wait_for_text(browser: Any, *expected: str) -> str:
    """Return the text of the page, once it shows every expected text.

    Raises:
        AssertionError: the text does not appear; the message holds the page.
    """
    from selenium.common.exceptions import StaleElementReferenceException

    text = ""

    def is_shown() -> bool:
        nonlocal text
        try:
            text = browser.find_element("tag name", "body").text
        except StaleElementReferenceException:
            return False
        return all(word in text for word in expected)

    try:
        wait_until(is_shown, _PATIENCE_S)
    except TimeoutError:
        keep(browser, "failed")
        raise AssertionError(f"the page never showed all of {expected}; it shows: {text[:2000]}") from None
    return text


def click(browser: Any, xpath: str) -> None:
    """Click the last clickable element of a path, once one appears."""
    wait_until(lambda: browser.find_elements("xpath", xpath), _PATIENCE_S)[-1].click()


def materialize_all(browser: Any, server: str) -> int:
    """Launch a backfill of all assets from the asset graph; return the number of clicks."""
    show(browser, f"{server}/asset-groups", "Materialize all")
    for xpath in _MATERIALIZE_ALL:
        click(browser, xpath)
    wait_until(lambda: "Launch runs to materialize" not in wait_for_text(browser, "Materialize all"), _PATIENCE_S)
    return len(_MATERIALIZE_ALL)


def switch(browser: Any, address: str, is_on: bool) -> None:
    """Switch a sensor or a schedule on or off on its page, and wait until the page, opened again, shows it."""
    from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException

    def is_switched() -> bool:
        show(browser, address, "Running")
        time.sleep(_SETTLE_S)
        try:
            box = browser.find_element("css selector", "input[type=checkbox]")
            if box.is_selected() == is_on:
                return True
            browser.execute_script("arguments[0].click()", box)
        except (NoSuchElementException, StaleElementReferenceException):
            return False
        time.sleep(_SETTLE_S)
        return False

    wait_until(is_switched, 2 * _PATIENCE_S)


def keep(browser: Any, name: str) -> None:
    """Save a picture if GRAPHRAG_SCREENSHOTS names a folder."""
    if folder := os.environ.get("GRAPHRAG_SCREENSHOTS"):
        browser.save_screenshot(str(Path(folder) / f"{name}.png"))
