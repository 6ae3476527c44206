"""The live page in a headless Chromium: what comes, what is of the past, and words of any length on any screen."""

import time
from itertools import pairwise

import pytest
from chromium import EXECUTABLE, Chromium

from contact_estimation.robot import load_arm
from contact_estimation.viz.player import live_page
from contact_estimation.viz.server import Frames, PageServer

pytestmark = pytest.mark.skipif(EXECUTABLE is None, reason="no chromium here (Debian's package 'chromium')")
NAMES = ("estimator", "momentum_observer")
REASON = "the torque of fr3_joint2 is wrong alone: " + "no contact and no other reading of it explain that. " * 12
OPACITY = "Number(getComputedStyle(document.getElementById('%s')).opacity)"
#: Where on the canvas the highest joint of the arm is drawn [px].
HIGHEST = """(() => {
  const [right, up, back] = scene.axes(), eye = Vector.plus(scene.target, back, scene.distance), c = scene.canvas;
  const share = Math.min(0.5, scene.headroom / c.clientHeight), view = Matrix.view(eye, right, up, back);
  const m = Matrix.times(Matrix.perspective(0.7, c.clientWidth / c.clientHeight, 0.02, 20, share), view);
  const row = (k, p) => m[k] * p[12] + m[4 + k] * p[13] + m[8 + k] * p[14] + m[12 + k];
  const heights = scene.poses(drawn(frames(), 0).q).map((p) => c.clientHeight * (1 - row(1, p) / row(3, p)) / 2);
  return Math.min(...heights);
})()"""
#: Edges of an element [px].
EDGES = """(() => {
  const {left, top, right, bottom} = document.getElementById("%s").getBoundingClientRect();
  return [left, top, right, bottom];
})()"""


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def browser():
    with Chromium() as browser:
        yield browser


@pytest.fixture
def frames():
    return Frames()


@pytest.fixture
def server(arm, frames):
    server = PageServer(live_page(arm, "ur16e, live", "contact estimates", NAMES, frames.period), frames)
    yield server
    server.close()


@pytest.fixture
def frame(arm):
    """Make a frame at ``t``: a push of ``newtons`` down."""

    def make(t, newtons=10.0, **more):
        q, force = [0.3] * arm.n, [0.0, 0.0, -newtons]
        given = {"t": t, "q": q, "valid": True, "reason": "", "mode": "free", "stiffness": None, "force": force}
        arrow = ["force", "arrow", 1, [0, 0, 0], [0, 0, -0.003 * newtons], [0.01, 0.022, 0.03], [0.84, 0.37, 0, 1]]
        return given | {"probabilities": [1.0], "modes": ["free"], "shapes": [arrow]} | more

    return make


def size(shown, width, height):
    """Give the page a window [px] of its own size, and wait until it is drawn."""
    count = shown.run("contactView.drawn")
    shown.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
    )
    shown.wait(f"innerWidth == {width} && contactView.drawn > {count}")


def test_live_frames_reach_every_client_until_the_server_ends(frames, server, frame, browser):
    first, second = browser.open(server.address), browser.open(server.address)
    for shown in (first, second):
        shown.wait("window.contactView && contactView.connected")
        bar = shown.run("document.getElementById('bar').innerText")
        assert "Pause" in bar and "Loop" not in bar and "Speed" not in bar  # these are of recordings
    for k in range(3):
        frames.put("estimator", frame(0.1 * k, 10.0 * k))
        for shown in (first, second):
            shown.wait(f"contactView.force && Math.abs(contactView.force[2] + 10 * {k}) < 1e-9")
    assert frames.watchers == 2
    elsewhere = {"link": "forearm_link", "link_force": [0.0, 60.0, 0.0], "truth": {"force": [0.0, 0.0, 0.0]}}
    frames.put("estimator", frame(0.3, 45.0, **elsewhere))
    words = "60.0 N at forearm_link (truth at the tool 0.0 N)"  # not the force at the tool that it would resemble
    first.wait(f"document.getElementById('force').textContent == '{words}'")
    broken = {"valid": False, "reason": REASON, "force": None, "probabilities": None, "modes": [], "shapes": []}
    frames.put("estimator", frame(0.4) | broken)
    first.wait("contactView.mode == 'invalid' && document.getElementById('force').textContent.length > 300")
    assert first.run("document.getElementById('modekey').innerText") == "free –"  # it has modes, none at this time
    bottom = "document.getElementById('head').getBoundingClientRect().bottom"
    assert first.run(f"scene.headroom >= {bottom} - 1")  # the arm is below the words of this frame, not the last one's
    assert first.run(OPACITY % "scene") == first.run(OPACITY % "now") == 1.0
    server.close()
    first.wait("!contactView.connected && document.getElementById('notice').textContent.includes('connection lost')")
    assert first.run(OPACITY % "scene") < 0.5 and first.run(OPACITY % "now") < 0.5  # of no present time


def test_a_paused_page_stays_at_its_time(frames, server, frame, browser):
    shown = browser.open(server.address)
    shown.wait("window.contactView && contactView.connected")
    frames.put("estimator", frame(1.0))
    shown.wait("contactView.shown == 1")
    shown.run("play(false)")
    for k in range(1, 4):
        frames.put("estimator", frame(1.0 + 5.0 * k, 50.0))  # beyond what a page keeps of the past
        shown.wait(f"data.observers.estimator.frames.at(-1).t == {1.0 + 5.0 * k}")
    size(shown, 900, 600)
    drawn = shown.run("contactView.drawn")
    shown.run("scene.azimuth += 0.5; scene.changed = true")
    shown.wait(f"contactView.drawn > {drawn}")
    assert shown.run("contactView.shown") == 1.0 and shown.run("contactView.force") == [0.0, 0.0, -10.0]
    assert "paused at 1.0 s" in shown.run("document.getElementById('clock').textContent")
    shown.run("play(true)")
    shown.wait("contactView.shown == 16")


def test_an_observer_that_died_is_stale_and_the_other_one_is_not(frames, server, frame, browser):
    frames.put("momentum_observer", frame(0.0))
    shown = browser.open(server.address)
    shown.wait("window.contactView && contactView.connected")
    for k in range(1, 100):  # only one of them lives
        frames.put("estimator", frame(0.1 * k))
        shown.wait(f"data.observers.estimator.frames.at(-1)?.t >= {0.1 * k} - 1e-9")
        if shown.run("document.getElementById('observer').innerText").count("silent"):
            break
        time.sleep(0.05)
    alive = "document.getElementById('notice').hidden && !document.body.classList.contains('stale')"
    assert shown.run("contactView.observer") == "estimator"
    frames.put("estimator", frame(20.0))
    shown.wait(alive)
    assert shown.run("[...document.getElementById('observer').options].map((option) => option.text)") == [
        "estimator",
        "momentum_observer: silent",
    ]
    shown.run("choose('momentum_observer')")
    shown.wait(
        "document.getElementById('notice').textContent.startsWith('no estimate of momentum_observer since 0.0 s, ')"
    )
    for part in ("scene", "now"):
        assert shown.run(OPACITY % part) < 0.5
    assert shown.run("Number(getComputedStyle(document.querySelector('figure')).opacity)") < 0.5
    frames.put("momentum_observer", frame(20.1))
    shown.wait(alive)


def test_a_page_opened_later_does_not_take_an_old_estimate_for_a_new_one(frames, server, frame, browser):
    frames.put("estimator", frame(3.0), arrival=time.monotonic() - 60.0)
    shown = browser.open(server.address)
    shown.wait("window.contactView && contactView.drawn > 0 && !document.getElementById('notice').hidden")
    words = shown.run("document.getElementById('notice').textContent")
    assert words.startswith("no estimate of estimator since 3.0 s, 6")  # 60 s ago, or some more
    assert shown.run("document.body.classList.contains('stale')")


@pytest.mark.parametrize(("width", "height"), [(1024, 700), (1920, 1080), (390, 844), (844, 390)])
def test_long_words_leave_title_and_arm_in_sight(frames, server, frame, browser, width, height):
    shown = browser.open(server.address)
    shown.wait("window.contactView && contactView.connected")
    mismatch = "payload of 1.3 kg that no tool names: " + "gravity turns with the flange, and the torque with it. " * 12
    frames.put("estimator", frame(1.0, mismatch=mismatch))
    shown.wait("contactView.shown == 1")
    size(shown, width, height)
    shown.wait("document.getElementById('notice').textContent.includes('since 1.0 s')")  # after two silent seconds
    count = shown.run("contactView.drawn")
    shown.run("scene.changed = true")
    shown.wait(f"contactView.drawn > {count}")
    parts = {name: shown.run(EDGES % name) for name in ("notice", "title", "subtitle", "now", "view", "side", "bar")}
    column = [parts[name] for name in ("notice", "title", "subtitle", "now")]
    for above, below in pairwise(column):
        assert above[3] <= below[1] + 1, parts  # nothing covers what is below it
    view = parts["view"]
    assert column[-1][3] < view[1] + 0.6 * (view[3] - view[1]), parts  # the arm has a place
    assert view[3] - view[1] >= 0.45 * height, parts
    for left, top, right, bottom in parts.values():
        assert left >= 0 and top >= 0 and right <= width and bottom <= height, parts
    assert shown.run("document.documentElement.scrollHeight") <= height
    # All of the words can be reached.
    shown.run("document.getElementById('now').scrollTop = 1e6")
    ends = """(() => {
      const range = document.createRange();
      range.selectNodeContents(document.getElementById("force"));
      return range.getBoundingClientRect().bottom;
    })()"""
    assert shown.run(ends) <= shown.run(EDGES % "now")[3] + 1
    assert shown.run("getComputedStyle(document.getElementById('now')).pointerEvents") == "auto"
    assert shown.run(HIGHEST) >= 0.5 * (parts["title"][1] + column[-1][3]), parts
