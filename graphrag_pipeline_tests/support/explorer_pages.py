"""The pages of the explorer in a browser: open one, find, press keys, and what scripts say of colors and places.

Keep out: what a page must show (`serve/explorer/test_explorer.py`).
"""

from __future__ import annotations

from typing import Any

from graphrag_pipeline_tests.support.dagster.live_dagster import wait_until

PATIENCE_S = 30
IS_INSIDE = """
    const mark = arguments[0].getBoundingClientRect(), box =
        document.querySelector('.document-text').getBoundingClientRect();
    return mark.top >= box.top - 1 && mark.bottom <= box.bottom + 1 && mark.top >= 0 && mark.bottom <= innerHeight;"""
LUMINANCE = """
    const luminance = (color) => { const [r, g, b] = color.match(/[\\d.]+/g).slice(0, 3).map((v) => { v /= 255;
        return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };"""
CONTRAST = f"""{LUMINANCE}
    let back = arguments[0];
    const isClear = (element) => getComputedStyle(element).backgroundColor === 'rgba(0, 0, 0, 0)';
    while (back.parentElement && isClear(back)) back = back.parentElement;
    const [a, b] = [getComputedStyle(arguments[0]).color, getComputedStyle(back).backgroundColor].map(luminance);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);"""


def resize(browser: Any, size: tuple[int, int]) -> None:
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def scheme(browser: Any, name: str) -> None:
    features = {"features": [{"name": "prefers-color-scheme", "value": name}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", features)


def visit(browser: Any, server: str, page: str, root: str = "carol") -> None:
    """Open a page of the explorer anew, on a root."""
    browser.get(f"{server}/static/icon.svg")
    browser.execute_script("sessionStorage.setItem('graphrag-root', arguments[0])", root)
    browser.get(f"{server}/#/{page}")


def find(browser: Any, selector: str) -> Any:
    return wait_until(lambda: browser.find_elements("css selector", selector), PATIENCE_S)[0]


def press(browser: Any, *keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(browser).send_keys(*keys).perform()


def tab_to(browser: Any, test: str, most: int = 80) -> None:
    """Press Tab until the focused element `e` passes a test in JavaScript.

    Raises:
        AssertionError: it does not within `most` presses.
    """
    for _ in range(most):
        press(browser, "\ue004")
        if browser.execute_script(f"const e = document.activeElement; return Boolean({test})"):
            return
    raise AssertionError(f"Tab never reached an element with {test}")


def marked(browser: Any) -> str:
    """Return the marked text of a document; mentions divide it."""
    return "".join(browser.execute_script("return [...document.querySelectorAll('mark')].map((e) => e.textContent)"))


def is_fitting(browser: Any) -> bool:
    return bool(browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"))


def serious_findings(browser: Any) -> list[str]:
    """Return what axe-core calls serious or critical on the shown page, with the elements."""
    from axe_core_python.selenium import Axe

    found = Axe().run(browser, options={"resultTypes": ["violations"]})["violations"]
    return [
        f"{one['id']}: {one['help']}: {[node['html'] for node in one['nodes']][:3]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def use_key(browser: Any, key: str) -> None:
    field = find(browser, "input[name=key]")
    field.clear()
    field.send_keys(f"{key}\ue007")
