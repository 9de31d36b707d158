"""Opens the dashboard in a headless Chromium, clicks what it is told to, and prints what a user sees as one JSON object.

usage: visit.py URL [--click TEXT]... [--into NAME]... [--wait TEXT]... [--key KEY]... [--seconds SECONDS] [--patience SECONDS]
                [--screenshot FILE] [--width PIXELS] [--height PIXELS] [--dark]

Needs the Debian package `chromium` (or the path of another Chromium in the variable CHROMIUM) and nothing else: it speaks the
DevTools protocol through the pipe of --remote-debugging-pipe, one JSON object per message, each ended by a NUL byte.

Opens URL and waits until the card of a domain, the sentence for no domain, or the banner shows. Then it does the steps in the
order of the arguments: --click clicks the visible button with this accessible name (or else with this text), when it is there
and enabled, and waits until the page is idle; --into clicks the directory NAME in the treemap, and waits for its entries;
--wait waits until TEXT shows anywhere on the page; --key presses a key, such as Tab or Enter. --seconds lets the page poll for
this time before the result is read.

The result has what shows (`banner`, `empty`, `domains`, `warnings`, `pendingErrors`, `waiting`, `transfers`, `breadcrumbs`,
`treemap`, `selected`, `conflicts`, `readers`, `notes`, `rates`), `buttons` (their accessible names), `focused`, `overflow`
(pixels that the page is wider than the window), `console` (errors and warnings, also of the Content-Security-Policy),
`failedRequests` (those that were answered with an error status, or not at all) and `foreign` (requests to another origin, which
the page must not make). Exits with 1 and a sentence on standard error when something did not appear within --patience seconds,
20 unless given.
"""

import argparse
import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

# Run in the page. What is hidden, with its ancestors, is not seen.
helpers = """
const shows = (node) => Boolean(node) && node.checkVisibility();
const text = (node) => shows(node) ? node.textContent.trim() : "";
const all = (selector, root = document) => [...root.querySelectorAll(selector)].filter(shows);
const nameOf = (node) => node.getAttribute("aria-label") ?? node.textContent.trim();
const enabled = (node) => !node.disabled && node.getAttribute("aria-disabled") !== "true";
const busy = () => Number(document.body?.dataset.busy ?? 0) > 0;
const centre = (node) => {
  node.scrollIntoView({ block: "center", behavior: "instant" });
  const { left, top, width, height } = node.getBoundingClientRect();
  const [x, y] = [left + width / 2, top + height / 2];
  const hit = document.elementFromPoint(x, y);
  return hit && (node.contains(hit) || hit.contains(node)) ? { x, y } : null;
};
const find = (name) => {
  const nodes = all("button").filter(enabled);
  return nodes.find((node) => nameOf(node) === name) ?? nodes.find((node) => node.textContent.trim() === name);
};
"""

report = """
({
  title: document.title,
  banner: text(document.querySelector("#banner")),
  empty: text(document.querySelector("#empty")),
  daemon: text(document.querySelector("#daemon")),
  domains: all("#domains > article").map((card) => ({
    name: text(card.querySelector("h3")),
    connection: text(card.querySelector(".connection")),
    explanation: text(card.querySelector(".explanation")),
    route: all(".route bdi", card).map(text),
    local: text(card.querySelector(".local")),
    numbers: Object.fromEntries(all("dl > div", card).map((node) => [
      text(node.querySelector("dt")), text(node.querySelector("dd"))])),
    warnings: all(".warnings li", card).map(text),
    note: text(card.querySelector(".note")),
  })),
  warnings: all(".warnings li").map(text),
  pendingErrors: all("#failures > li").map((node) => ({
    name: text(node.querySelector(".name")),
    path: text(node.querySelector(".path")),
    message: text(node.querySelector(".message")),
    details: text(node.querySelector(".message + p")),
  })),
  waiting: all("#waiting > li").map(text),
  transfers: all("#transfers > li").map((node) => ({
    name: text(node.querySelector(".name")),
    path: text(node.querySelector(".path")),
    direction: node.classList.contains("upload") ? "upload" : "download",
    amount: text(node.querySelector(".amount")),
    rate: text(node.querySelector(".speed")),
  })),
  breadcrumbs: all("#breadcrumbs button").map(text),
  treemap: all("#treemap > *").map((node) => ({
    name: node.dataset.name,
    label: nameOf(node),
    kind: node.classList[1],
    area: Math.round(node.offsetWidth * node.offsetHeight),
    filled: Math.round(parseFloat(node.querySelector(".fill").style.height)),
  })),
  treemapMessage: text(document.querySelector("#treemap + .message")),
  selected: { name: text(document.querySelector("#selection .name")), state: text(document.querySelector("#selection .muted")) },
  conflicts: all("#conflicts > li").map((node) => ({
    names: all(".version .name", node).map(text),
    explanations: all(".explanation", node).map((sentence) => sentence.textContent.trim()),
    buttons: all("button", node).map(nameOf),
    note: text(node.querySelector(".note")),
  })),
  readers: all("#readers > tr").map((row) => [...row.cells].map(text)),
  rates: { received: text(document.querySelector("#received")), sent: text(document.querySelector("#sent")) },
  notes: all(".note").map(text),
  buttons: all("button:not(.tile)").map(nameOf),
  focused: document.activeElement === document.body ? null : nameOf(document.activeElement).slice(0, 200),
  overflow: document.documentElement.scrollWidth - innerWidth,
})
"""


# The codes of Windows, which Chromium needs for the default action of a key, and the text that the key types.
keys = {
    "Backspace": (8, ""), "Tab": (9, ""), "Enter": (13, "\r"), "Escape": (27, ""), "End": (35, ""), "Home": (36, ""),
    "ArrowLeft": (37, ""), "ArrowUp": (38, ""), "ArrowRight": (39, ""), "ArrowDown": (40, ""),
}


class Missing(Exception):
    """Something did not appear."""


class Browser:
    """A Chromium with a profile of its own, ended with all its processes by `close`."""

    def __init__(self, program):
        self.profile = tempfile.mkdtemp(prefix="yonder-browser-")
        commands, self.commands = os.pipe()
        self.events, events = os.pipe()

        def take_pipes():
            # Chromium reads commands from descriptor 3 and writes to 4, which may be the pipes of this process.
            reading, writing = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (commands, events))
            os.dup2(reading, 3)
            os.dup2(writing, 4)
            os.close(reading)
            os.close(writing)

        arguments = [
            program, "--headless=new", "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={self.profile}",
            "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-default-browser-check",
            "--no-proxy-server", "--lang=en-US",
        ]
        # The sandbox of Chromium refuses to run as root.
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        self.log = open(os.path.join(self.profile, "log"), "w+b")
        self.process = subprocess.Popen(
            arguments + ["about:blank"], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            preexec_fn=take_pipes, close_fds=False, start_new_session=True)
        os.close(commands)
        os.close(events)
        self.received = b""
        self.number = 0
        self.session = None
        self.console = []
        self.failed = []
        self.requested = []

    def close(self):
        """Ends Chromium, and removes its profile."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.log.close()
        # A child that dies may still write into the profile.
        for _ in range(20):
            shutil.rmtree(self.profile, ignore_errors=True)
            if not os.path.exists(self.profile):
                break
            time.sleep(0.1)

    def message(self, deadline):
        """The next message from Chromium; None after the deadline."""
        while b"\0" not in self.received:
            wait = deadline - time.monotonic()
            if wait <= 0 or not select.select([self.events], [], [], wait)[0]:
                return None
            data = os.read(self.events, 1 << 16)
            if not data:
                self.log.seek(0)
                raise Missing("Chromium has ended: " + self.log.read().decode(errors="replace")[-500:])
            self.received += data
        line, self.received = self.received.split(b"\0", 1)
        message = json.loads(line)
        self.note(message.get("method"), message.get("params", {}))
        return message

    def note(self, method, parameters):
        if method == "Network.requestWillBeSent":
            self.requested.append(parameters["request"]["url"])
        elif method == "Network.webSocketCreated":
            self.requested.append(parameters["url"])
        elif method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.console.append(" ".join(str(a.get("value", a.get("description"))) for a in parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["source"] == "network":
            self.failed.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}".strip())
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            entry = parameters["entry"]
            self.console.append(f"{entry['text']} {entry.get('url', '')}".strip())

    def call(self, method, patience=20, **parameters):
        """Sends a command, and returns its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data):]
        deadline = time.monotonic() + patience
        while answer := self.message(deadline):
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Missing(f"Chromium refuses {method}: {answer['error']['message']}")
                return answer["result"]
        raise Missing(f"Chromium did not answer {method} within {patience:g} seconds")

    def listen(self, seconds):
        deadline = time.monotonic() + seconds
        while self.message(deadline):
            pass

    def evaluate(self, expression):
        """The value of a JavaScript expression in the page."""
        result = self.call(
            "Runtime.evaluate", expression=f"(() => {{ {helpers} return ({expression}); }})()", returnByValue=True)
        if "exceptionDetails" in result:
            raise Missing("the page cannot be examined: " + json.dumps(result["exceptionDetails"])[:500])
        return result["result"].get("value")

    def until(self, expression, what, patience):
        """Waits until an expression is true, and returns its value."""
        deadline = time.monotonic() + patience
        while True:
            value = self.evaluate(expression)
            if value:
                return value
            if time.monotonic() > deadline:
                raise Missing(f"{what} did not appear within {patience:g} seconds")
            self.listen(0.1)

    def open(self, url, width, height, is_dark):
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}])
        failure = self.call("Page.navigate", url=url).get("errorText")
        if failure:
            raise Missing(f"{url} does not open: {failure}")

    def click(self, place):
        """Clicks with the mouse, as a user does."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, buttons=1, **place)

    def press(self, key):
        """Presses and releases a key by its name in the DOM."""
        number, text = keys.get(key, (0, ""))
        key = {"key": key, "code": key, "windowsVirtualKeyCode": number}
        self.call("Input.dispatchKeyEvent", type="keyDown", **key, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **key)

    def screenshot(self, file):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        image = self.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=True,
            clip={"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 8000), "scale": 1})
        with open(file, "wb") as output:
            output.write(base64.b64decode(image["data"]))


class Step(argparse.Action):
    """Keeps the steps in the order of the arguments."""

    def __call__(self, parser, namespace, value, option=None):
        namespace.steps.append((option.lstrip("-"), value))


def perform(browser, step, value, patience):
    quoted = json.dumps(value)
    if step == "click":
        # The place is read when the button is enabled and nothing covers it.
        node = f"find({quoted})"
        place = browser.until(f"{node} && centre({node})", f"the button '{value}'", patience)
        browser.click(place)
        browser.until("!busy()", f"the end of the action of '{value}'", patience)
    elif step == "into":
        tile = f"all('#treemap > .directory').find((node) => node.dataset.name === {quoted})"
        place = browser.until(f"{tile} && centre({tile})", f"the directory '{value}' in the treemap", patience)
        path = browser.evaluate("all('#breadcrumbs button').length")
        browser.click(place)
        browser.until(
            f"all('#breadcrumbs button').length > {path} && !busy()", f"the contents of '{value}'", patience)
    elif step == "key":
        browser.press(value)
        browser.until("!busy()", f"the end of the action of the key {value}", patience)
    elif step == "wait":
        browser.until(f"document.body.innerText.includes({quoted})", f"the text '{value}'", patience)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(steps=[])
    parser.add_argument("url")
    for option in ("--click", "--into", "--wait", "--key"):
        parser.add_argument(option, action=Step)
    parser.add_argument("--screenshot")
    parser.add_argument("--patience", type=float, default=20)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--dark", action="store_true")
    options = parser.parse_args()

    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not program:
        sys.exit("there is no Chromium: install the package chromium")
    # The finally clause below must run when the test is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    browser = Browser(program)
    try:
        browser.open(options.url, options.width, options.height, options.dark)
        ready = "all('#domains > article, #empty, #banner.banner').length > 0"
        browser.until(ready, "the card of a domain", options.patience)
        # The lists and the treemap come with requests of their own.
        browser.until(
            "!busy() && (all('#empty, #banner.banner').length || all('#treemap > *, #treemap + .message').length)",
            "the treemap", options.patience)
        for step, value in options.steps:
            perform(browser, step, value, options.patience)
        browser.listen(max(options.seconds, 0.2))
        result = browser.evaluate(report)
        if options.screenshot:
            browser.screenshot(options.screenshot)
        origin = urllib.parse.urlsplit(options.url)[:2]
        own = ("data", "blob", "about")
        requested = [(url, urllib.parse.urlsplit(url)) for url in browser.requested]
        result["console"] = browser.console
        result["failedRequests"] = browser.failed
        result["foreign"] = [url for url, parts in requested if parts[0] not in own and parts[:2] != origin]
        result["requests"] = len(requested)
        print(json.dumps(result, indent=2))
    except Missing as error:
        if options.screenshot and browser.session and browser.process.poll() is None:
            try:
                browser.screenshot(options.screenshot)
            except Missing:
                pass
        sys.exit(f"{error}" + "".join(f"\n{line}" for line in browser.console[:5]))
    finally:
        browser.close()


if __name__ == "__main__":
    main()
