"""Looks at an open page: any width, light and dark, a screen reader's needs by axe-core, and a keyboard alone.

In:  a browser with a page of tidegate; axe-core by npm, or its file in AXE. Without both, axe is left out, unless
     TIDEGATE_REQUIRE_BROWSER is set.
Out: screenshots; AssertionError names what a person would miss.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

from selenium.webdriver import Chrome
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

AXE_VERSION: Final = "4.14.1"
WIDTHS: Final = (3840, 1400, 400)
# Views are renewed under a test's feet only while nothing has the focus.
_STOPS: Final = (
    "return [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, [tabindex]')]"
    ".filter(each => each.getClientRects().length && !each.disabled)"
    ".map((each, number) => { each.dataset.stop = number; return each.outerHTML.slice(0, 120); })"
)
_FOCUS: Final = (
    "const at = document.activeElement; return [at.dataset.stop ?? '', getComputedStyle(at).outlineStyle !== 'none']"
)
# The tables that a person must scroll sideways to read.
_ASIDE: Final = (
    "return [...document.querySelectorAll('.wide')].filter(each => each.scrollWidth > each.clientWidth)"
    ".map(each => each.getAttribute('aria-label'))"
)


@cache
def axe_script() -> str:
    """Its text; "" where it can't be had."""
    file = Path(os.environ.get("AXE", "")) if os.environ.get("AXE") else None
    if file is None:
        folder = Path(__file__).parents[2] / ".tidegate" / "axe" / AXE_VERSION
        file = folder / "node_modules" / "axe-core" / "axe.min.js"
        if not file.exists() and (npm := shutil.which("npm")):
            quiet = ("--no-save", "--ignore-scripts", "--no-audit", "--no-fund")
            command = [npm, "install", *quiet, "--prefix", str(folder), f"axe-core@{AXE_VERSION}"]
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(command, check=False, timeout=300, capture_output=True)
    if not file.exists():
        assert not os.environ.get("TIDEGATE_REQUIRE_BROWSER"), "no axe-core: install npm, or name its file in AXE"
        return ""
    return file.read_text()


def resize(chromium: Chrome, width: int, height: int = 2400) -> None:
    """The viewport, in CSS pixels."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def look_at(chromium: Chrome, screenshots: Path, name: str) -> None:
    """Nothing is cut off in any width, and axe has no complaint, light and dark."""
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            resize(chromium, width)
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            chromium.save_screenshot(str(screenshots / f"{name}-{width}-{scheme}.png"))
            wide = chromium.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width, f"{name}: {wide} pixels are shown in {width}"
            if width == min(WIDTHS):
                aside = chromium.execute_script(_ASIDE)
                assert not aside, f"{name}: columns of {aside} are out of sight"
            if script := axe_script():
                chromium.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
                chromium.execute_script(script)
                faults = chromium.execute_async_script("axe.run().then(r => arguments[0](r.violations))")
                assert [(fault["id"], [node["html"] for node in fault["nodes"]]) for fault in faults] == [], name


def walk_by_keyboard(chromium: Chrome) -> int:
    """Each link, button and field has its turn with the Tab key, in the page's order, and shows that; how many."""
    chromium.execute_script("document.activeElement.blur()")
    stops = chromium.execute_script(_STOPS)
    for number, html in enumerate(stops):
        ActionChains(chromium).send_keys(Keys.TAB).perform()
        at, shown = chromium.execute_script(_FOCUS)
        assert at == str(number), f"the Tab key doesn't come to {html}"
        assert shown, f"nobody sees that {html} has the focus"
    return len(stops)
