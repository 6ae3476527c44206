"""The 3-D page in a headless Chromium: arm, contact, moving plots, slider, observers; nothing is fetched."""

import dataclasses
import json

import numpy as np
import pytest
from chromium import EXECUTABLE, Chromium

from contact_estimation.filters.observer import ContactState
from contact_estimation.filters.registry import open_stream
from contact_estimation.io.export import EstimateLog
from contact_estimation.io.recording import Recording
from contact_estimation.io.replay import replay
from contact_estimation.robot import load_arm
from contact_estimation.viz.frames import estimate_at, recorded_frames
from contact_estimation.viz.markers import estimate_shapes
from contact_estimation.viz.player import recording_page

needs_chromium = pytest.mark.skipif(EXECUTABLE is None, reason="no chromium here (Debian's package 'chromium')")
PUSH = 40.0  # [N] along base x, from the second second on


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def recording(arm):
    """Three seconds of slow motion, pushed at the TCP: torque by Pinocchio's statics, not by a simulated arm."""
    t = np.arange(0.0, 3.0, 0.004)
    q = np.array(arm.settings.ready) + 0.05 * np.sin(t)[:, None]
    dq = np.repeat(0.05 * np.cos(t)[:, None], arm.n, axis=1)
    force = np.outer(t >= 1.0, [PUSH, 0.0, 0.0])
    jacobians = np.array([arm.tcp_jacobian(row)[:3] for row in q])
    tau = np.array([arm.gravity(row) for row in q]) - np.einsum("nkj,nk->nj", jacobians, force)
    tau += 0.2 * dq  # viscous friction
    rotations = arm.tcp_poses(q)[1]
    wrench = np.hstack([np.einsum("nkj,nk->nj", rotations, force), np.zeros((len(t), 3))])
    stamps = 1_000_000_000 + np.round(1e9 * t).astype(np.int64)
    return Recording(stamps, arm.joint_names, q, dq, tau, "statics", truth={"wrench_tcp": wrench})


@pytest.fixture(scope="module")
def page(arm, recording):
    observers = ("momentum_manufacturer", "ekf")
    streams = [open_stream(arm, name, "ur16e_driver") for name in observers]
    logs = {name: replay(recording, stream) for name, stream in zip(observers, streams)}
    return recording_page(arm, "push & <show>", recorded_frames(arm, recording, logs))


def embedded(page: str) -> dict:
    return json.loads(page.split('id="data">')[1].split("</script>")[0])


def test_frames_tell_what_the_observer_told(page):
    data = embedded(page)
    assert set(data["observers"]) == {"momentum_manufacturer", "ekf"}
    frames = data["observers"]["momentum_manufacturer"]["frames"]
    assert "push &amp; &lt;show&gt;" in page and "30 frames per second" in page
    assert max(np.diff([frame["t"] for frame in frames if "shapes" in frame])) < 2 / 30
    last = [frame for frame in frames if "shapes" in frame][-1]
    assert np.linalg.norm(last["force"]) == pytest.approx(PUSH, rel=0.15)
    assert np.linalg.norm(last["truth"]["force"]) == pytest.approx(PUSH, rel=1e-3)
    names = {shape[0] for shape in last["shapes"]}
    assert {"force", "truth/force"} <= names and "force" not in {shape[0] for shape in frames[0]["shapes"]}


def test_a_recorded_contact_has_the_friction_cone_of_a_live_one(arm, recording):
    """Archives have no column for the coefficients of friction; the page draws the same shapes as RViz."""
    stream, log = open_stream(arm, "momentum_manufacturer", "ur16e_driver"), EstimateLog("made", 2)
    told = stream.push(int(recording.stamps_ns[0]), recording.q[0], recording.dq[0], recording.tau[0])
    place, stiffness = np.array([0.4, 0.3, 0.1]), np.array([0.0, 0.0, 2e4])
    contact = ContactState(
        "tip", 0.9, stiffness, place, np.zeros(3), place, np.eye(9), law_parameters={"friction_1": 0.3}
    )
    for probability in (0.9, 0.1):
        contacts = (dataclasses.replace(contact, probability=probability),)
        log.append(0, dataclasses.replace(told, contacts=contacts, valid=True, reason=""))
    rows = [estimate_at(log, log.columns(), row) for row in range(2)]
    names = [{shape.name for shape in estimate_shapes(row, "tool0", "base") if shape.visible} for row in rows]
    assert ["contact/tip/friction_cone" in shown for shown in names] == [True, False]


@pytest.fixture(scope="module")
def browser():
    with Chromium() as browser:
        yield browser


@needs_chromium
def test_a_file_plays_and_fetches_nothing(arm, recording, page, browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page)
    shown = browser.open(path.as_uri())
    shown.wait("window.contactView && contactView.drawn > 1 && contactView.time > 0.1")
    shown.run("document.getElementById('slider').value = 2.5; document.getElementById('slider').oninput()")
    shown.wait("!contactView.playing && contactView.shapes.includes('force')")
    assert abs(shown.run("contactView.shown") - 2.5) < 0.05
    assert shown.run("document.getElementById('mode').textContent") == "no modes"  # "unknown" is a contact's mode
    row = round(shown.run("drawn(frames(), contactView.index).t") / 0.004)
    assert abs(row * 0.004 - 2.5) < 0.05
    tcp = shown.run("Array.from(scene.tcp)")  # the page's own kinematics
    np.testing.assert_allclose(tcp, arm.tcp_pose(recording.q[row])[0], atol=1e-4)
    assert np.linalg.norm(shown.run("contactView.force")) == pytest.approx(PUSH, rel=0.15)
    drawn = "Array.from(document.getElementById('%s').getContext('2d').getImageData(0, 0, 300, 60).data).join()"
    before = shown.run(drawn % "forceplot")
    shown.run("seek(1.5)")
    shown.wait("contactView.time == 1.5")
    shown.wait(f"{drawn % 'forceplot'} != '{before}'")  # the plot has moved
    shown.run("document.getElementById('observer').value = 'ekf'; document.getElementById('observer').onchange()")
    shown.wait("contactView.observer == 'ekf' && contactView.shapes.some((name) => name.startsWith('contact/'))")
    shown.wait("document.getElementById('mode').textContent == 'contact'")
    head = "document.getElementById('head').getBoundingClientRect()"
    assert shown.run(f"scene.headroom >= {head}.height")  # the view leaves the text's place free
    assert [event["request"]["url"] for event in shown.events("Network.requestWillBeSent")] == [path.as_uri()]
    assert not shown.events("Runtime.exceptionThrown")


@needs_chromium
@pytest.mark.parametrize("width, height", [(1000, 2400), (1300, 800)])
def test_the_arm_is_inside_a_window_of_any_shape(page, browser, tmp_path, width, height):
    """A tall window cut it off at the tool."""
    (tmp_path / "page.html").write_text(page)
    shown = browser.open((tmp_path / "page.html").as_uri())
    shown.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    shown.wait(f"window.contactView && contactView.drawn > 1 && innerHeight == {height} && scene.seen")
    shown.run("seek(1.0)")
    shown.wait("contactView.shown > 0.9 && scene.canvas.clientHeight / scene.canvas.height > 0")
    places = shown.run("""scene.poses(drawn(frames(), contactView.index).q).map((p) => {
      const m = scene.seen, row = (k) => m[k] * p[12] + m[4 + k] * p[13] + m[8 + k] * p[14] + m[12 + k];
      return [row(0) / row(3), row(1) / row(3)];
    })""")
    assert np.abs(places).max() < 0.95, places  # the edges of the view are at 1


@needs_chromium
def test_a_stacked_plot_leaves_gaps_open(page, browser, tmp_path):
    (tmp_path / "page.html").write_text(page)
    shown = browser.open((tmp_path / "page.html").as_uri())
    shown.wait("window.contactView && contactView.drawn > 1")
    drawn = """(() => {
      const canvas = document.createElement("canvas");
      canvas.style.cssText = "position:fixed;width:438px;height:120px";
      document.body.append(canvas);
      const times = [0, 0.4, 0.8, 2, 2.4, 2.8, 3.2, 3.6, 4], lost = [2.8];
      const frames = times.map((t) => ({t, row: lost.includes(t) ? [] : [0.4, 0.6]}));
      new Plot(canvas, (frame) => frame.row, 0, 1, {stacked: true}).draw(frames, 4, ["#ff0000", "#0000ff"]);
      const ink = canvas.getContext("2d"), ratio = window.devicePixelRatio, left = 38, wide = (438 - 38 - 4) / 10;
      const red = (t) => ink.getImageData((left + wide * t) * ratio, 90 * ratio, 1, 1).data.slice(0, 3).join();
      return [0.5, 1.4, 2.2, 2.6, 3.0, 3.8].map((t) => red(t) == "255,0,0");
    })()"""
    assert shown.run(drawn) == [True, False, True, False, False, True]
