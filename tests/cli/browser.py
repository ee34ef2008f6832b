"""Opens a page in headless Chromium, as a phone and as a desk, light and dark, and prints what it saw as JSON.

Arguments: the address, and a directory for screenshots if they are wanted."""
import base64
import json
import os
import subprocess
import sys
import tempfile

VIEWS = {"phone": (360, 740, True), "desk": (1280, 800, False)}
MEASURE = """(() => {
    const style = getComputedStyle(document.body);
    return {width: document.documentElement.scrollWidth, text: document.body.innerText, color: style.color,
            background: getComputedStyle(document.documentElement).backgroundColor + style.backgroundColor,
            scripts: document.scripts.length, loaded: performance.getEntriesByType('resource').length};
})()"""


class Browser:
    """Chromium, spoken to by its pipe: messages in JSON that end with a zero byte."""

    def __init__(self, profile):
        to_browser, self.commands = os.pipe()
        self.answers, from_browser = os.pipe()
        # The browser reads from descriptor 3 and writes to 4.
        script = f'exec 3<&{to_browser} 4>&{from_browser}; exec chromium "$@"'
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
                   "--disable-sync", "--no-first-run", "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        self.process = subprocess.Popen(["bash", "-c", script, "chromium", *options], pass_fds=(to_browser, from_browser),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.rest = b""
        self.count = 0
        self.events = []

    def read(self):
        while b"\0" not in self.rest:
            piece = os.read(self.answers, 1 << 16)
            if not piece:
                sys.exit("the browser ended")
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, session=None, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") != self.count:
                self.events.append(answer)
            elif "error" in answer:
                sys.exit(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def wait(self, method):
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.read())


def look(browser, url, view, scheme, screenshots):
    width, height, mobile = VIEWS[view]
    target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
    session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    ask = lambda method, **parameters: browser.ask(method, session, **parameters)
    for domain in ["Page", "Log", "Runtime"]:
        ask(f"{domain}.enable")
    ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
    ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.events.clear()
    ask("Page.navigate", url=url)
    browser.wait("Page.loadEventFired")
    seen = ask("Runtime.evaluate", expression=MEASURE, returnByValue=True)["result"]["value"]
    if screenshots:
        image = ask("Page.captureScreenshot", format="png")["data"]
        with open(os.path.join(screenshots, f"{view}-{scheme}.png"), "wb") as file:
            file.write(base64.b64decode(image))
    complaints = [event["params"]["entry"]["text"] for event in browser.events if event.get("method") == "Log.entryAdded"]
    browser.ask("Target.closeTarget", targetId=target)
    return {**seen, "view": view, "scheme": scheme, "viewport": width, "complaints": complaints}


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
    browser = Browser(profile)
    try:
        directory = sys.argv[2] if len(sys.argv) > 2 else None
        print(json.dumps([look(browser, sys.argv[1], view, scheme, directory) for view in VIEWS for scheme in ["light", "dark"]]))
    finally:
        browser.process.kill()
        browser.process.wait()
