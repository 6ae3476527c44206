// Plays a recording, or follows a live arm: which frame is shown, and everything around the 3-D view.
"use strict";

const KEEP = 12;  // [s] of live frames
const SILENCE = 2;  // [s] without an estimate, then what is shown is not of now
const el = (id) => document.getElementById(id);
const data = JSON.parse(el("data").textContent);
const observers = Object.keys(data.observers);
const state = {time: 0, playing: true, observer: observers[0], frames: 0, drawn: 0, index: -1, connected: !data.live, live: data.live};
window.contactView = state;  // what is shown, for tests and the curious
let dirty = true, lastTick = 0, lastIndex = "", slow = 0, posture = null;
const arrivals = {};  // observer -> when its newest estimate came [ms], on the clock of performance.now()
let held = null;  // observer -> its frames while a live page is paused

let scene = null, noScene = "";
try {
  scene = new Scene(el("scene"), data.scene);
} catch (error) {
  noScene = error.message;
}
const nothing = [null, null, null];
const truth = (frame, name) => frame.truth?.[name] ?? null;
const force = new Plot(el("forceplot"), (f) => [...(f.force ?? nothing), ...(data.truth ? truth(f, "force") ?? nothing : [])], -5, 5, {dashed: data.truth ? 3 : 0});
const kilo = (value) => (value === null ? null : value / 1e3);
const stiffness = new Plot(el("stiffnessplot"), (f) => [kilo(f.stiffness), ...(data.truth ? [kilo(truth(f, "stiffness"))] : [])], 0, 1, {dashed: data.truth ? 1 : 0});
const modes = new Plot(el("modeplot"), (f) => f.probabilities || [], 0, 1, {stacked: true});

el("title").textContent = el("title").title = data.title;
el("subtitle").textContent = data.subtitle;
for (const name of observers) el("observer").append(new Option(name, name));
el("observer").disabled = observers.length < 2;
el("observer").onchange = () => choose(el("observer").value);
el("legend").innerHTML = data.legend.map(([name, colour]) => `<span><i style="background:${colour}"></i>${name}</span>`).join(" ");

function frames() { return (held ?? data.observers)[state.observer].frames; }

function choose(name) {
  state.observer = name;
  el("observer").value = name;
  lastIndex = "";
  dirty = true;
}

// The window of the plots: those that the recording fills and that have enough frames to make a curve.
function offerWindows() {
  const fine = WINDOWS.filter((seconds) => seconds >= 100 * data.period), used = fine.filter((_, k) => !k || fine[k - 1] < data.end);
  const text = (seconds) => (seconds < 60 ? `${seconds} s` : seconds < 3600 ? `${seconds / 60} min` : `${seconds / 3600} h`);
  for (const seconds of used) el("window").append(new Option(text(seconds), seconds));
  span.window = used[0] ?? WINDOWS[WINDOWS.length - 1];
  span.gap = Math.max(span.gap, 2.5 * data.period);
  el("window").closest("label").hidden = data.live || used.length < 2;
  el("window").onchange = () => { span.window = Number(el("window").value); lastIndex = ""; dirty = true; };
}

function notice(text) {
  if (el("notice").textContent !== text) el("notice").textContent = text;
  el("notice").hidden = !text;
}

// Since when an observer is silent [s], or null while it is not.
function silence(name, now) {
  const seconds = (now - arrivals[name]) / 1000;  // NaN before the first estimate
  return seconds > SILENCE ? seconds : null;
}

// Say why what is shown is not of now, and let it look so. Each observer has its own say.
function tellStale(now) {
  let text = "", newest = null;
  for (const [k, name] of observers.entries()) {
    const seconds = silence(name, now), last = data.observers[name].frames.at(-1);
    const words = seconds === null ? name : `${name}: silent`;
    if (el("observer").options[k].text !== words) el("observer").options[k].text = words;
    if (name === state.observer) newest = seconds === null ? null : `no estimate of ${name} since ${last.t.toFixed(1)} s, ${ago(seconds)} ago`;
  }
  if (!state.connected) text = "connection lost: the server does not answer; trying again";
  else if (arrivals[state.observer] === undefined) text = observers.length > 1 ? `waiting for estimates of ${state.observer}` : "waiting for estimates";
  else text = newest ?? "";
  notice(text || noScene);
  document.body.classList.toggle("stale", Boolean(text));
}

function ago(seconds) { return seconds < 120 ? `${Math.floor(seconds)} s` : `${Math.floor(seconds / 60)} min`; }

function seek(time) {
  state.time = Math.min(Math.max(time, data.begin), data.end);
  el("slider").value = state.time;
  dirty = true;
}

function play(on) {
  state.playing = on;
  el("play").textContent = on ? "Pause" : "Play";
  if (data.live) {  // a paused page keeps what it shows, whatever comes
    held = on ? null : Object.fromEntries(observers.map((name) => [name, {frames: [...data.observers[name].frames]}]));
    lastIndex = "";
    dirty = true;
  } else if (on && state.time >= data.end - 1e-6) seek(data.begin);
}

// The frame whose shapes and posture the 3-D view shows: not every frame of a recording has some.
function drawn(list, index) {
  while (index > 0 && !list[index].shapes) index--;
  return list[index].shapes ? list[index] : list.find((frame) => frame.shapes);
}

function show(list, index) {
  const frame = list[index], view = drawn(list, index);
  state.force = frame.valid ? frame.force : null;
  state.mode = frame.valid ? frame.mode : "invalid";
  state.shapes = frame.valid ? view.shapes.map((shape) => shape[0]) : [];
  state.shown = frame.t;
  const own = data.observers[state.observer], count = own.modes.length;
  // The mode of an observer without any is "unknown" for ever, which is a contact of those that have modes.
  el("mode").textContent = frame.valid && !count ? "no modes" : state.mode;
  el("mode").style.background = !frame.valid ? "#9a2c00" : !count ? "#57606a" : frame.mode === "free" ? "#1a7f37" : "#0b5cad";
  el("force").textContent = frame.valid ? told(frame) : frame.reason;
  el("now").classList.toggle("long", el("now").scrollHeight > el("now").clientHeight + 1);
  if (scene) scene.headroom = el("head").offsetTop + el("head").offsetHeight;
  if (view.q.every((angle) => angle !== null)) posture = view.q;
  if (scene && posture) scene.draw(posture, frame.valid ? view.shapes : view.shapes.filter((shape) => shape[0].startsWith("truth/")));
  const xyz = COLOURS.slice(0, 3);
  force.draw(list, frame.t, [...xyz, ...xyz]);
  stiffness.draw(list, frame.t, [COLOURS[1], COLOURS[6]]);
  modes.draw(list, frame.t, COLOURS);
  const key = (names, colours) => names.map((name, k) => `<b style="color:${colours[k]}">${name}</b>`).join(" ");
  el("forcekey").innerHTML = key(["x", "y", "z"], xyz) + (data.truth ? " truth dashed" : "");
  el("stiffnesskey").textContent = frame.stiffness === null ? "–" : (frame.stiffness / 1e3).toFixed(1);
  el("modekey").innerHTML = count ? own.modes.map((name, k) => `<b style="color:${COLOURS[k % 7]}">${escape(name)}</b> ${frame.probabilities?.[k]?.toFixed(2) ?? "–"}`).join(" ") : "this observer has no modes";
  el("clock").textContent = data.live ? `${held ? "paused at" : "live"} ${frame.t.toFixed(1)} s` : `${state.time.toFixed(2)} / ${data.end.toFixed(2)} s`;
  state.drawn += 1;
}

// The force in words. The truth of a recording is that of the tool only; a push may be elsewhere.
function told(frame) {
  const newtons = (vector) => `${Vector.norm(vector).toFixed(1)} N`, tool = frame.truth?.force;
  const truth = tool ? ` (truth at the tool ${newtons(tool)})` : "";
  const force = newtons(frame.link_force ?? frame.force), at = frame.link ? ` at ${frame.link}` : "";
  return `${force}${frame.link_force ? at + truth : truth + at}${frame.mismatch ? `; model and data disagree: ${frame.mismatch}` : ""}`;
}

function escape(text) { return text.replace(/[&<>"]/g, (c) => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})[c]); }

function tick(now) {
  requestAnimationFrame(tick);
  const passed = Math.min((now - lastTick) / 1000, 0.25);
  lastTick = now;
  const list = frames();
  if (!data.live && state.playing && list.length) {
    let time = state.time + passed * Number(el("speed").value);
    if (time > data.end) { if (el("loop").checked) time = data.begin; else play(false); }
    seek(time);
  }
  if (data.live) tellStale(performance.now());
  if (list.length && (dirty || scene?.changed)) {
    const index = data.live ? list.length - 1 : find(list, state.time), name = `${state.observer} ${index} ${list[index].t}`;
    if (name !== lastIndex || scene?.changed) {
      show(list, index);
      adapt(passed);
      lastIndex = name;
      state.index = index;
    }
    dirty = false;
    if (scene) scene.changed = false;
  }
  state.frames += 1;
}

// Fewer pixels where drawing holds up the page: below 30 frames per second.
function adapt(seconds) {
  slow = 0.9 * slow + 0.1 * seconds;
  if (slow > 1 / 30 && scene && scene.quality > 0.35) { scene.quality *= 0.85; slow = 0; }
}

function receive(message) {
  const own = data.observers[message.observer];
  if (!own) return;
  arrivals[message.observer] = performance.now() - 1000 * message.age;
  if (message.modes?.length) own.modes = message.modes;  // an invalid estimate has none
  const list = own.frames;
  if (list.length && message.t < list[list.length - 1].t) list.length = 0;  // time jumped back
  list.push(message);
  while (list[0].t < message.t - KEEP) list.shift();
  if (message.observer === state.observer && state.playing) dirty = true;
}

function follow() {
  const source = new EventSource("live");
  source.onopen = () => { state.connected = true; };
  source.onerror = () => { state.connected = false; };
  source.onmessage = (event) => receive(JSON.parse(event.data));
}

// A link may name the moment and the observer: page.html#t=7.2&observer=ekf; the page then stands there.
function goTo(link) {
  const asked = new URLSearchParams(link.slice(1)), time = Number(asked.get("t") ?? NaN);
  if (observers.includes(asked.get("observer"))) choose(asked.get("observer"));
  if (Number.isFinite(time)) { play(false); seek(time); }
}

el("play").onclick = () => play(!state.playing);
el("slider").min = data.begin;
el("slider").max = data.end;
el("slider").oninput = () => { play(false); seek(Number(el("slider").value)); };
document.addEventListener("keydown", (event) => {
  if (event.target.matches("select")) return;
  const step = {ArrowLeft: -0.1, ArrowRight: 0.1}[event.key];
  if (event.key === " ") play(!state.playing);
  else if (step && !data.live) { play(false); seek(state.time + Math.sign(step) * Math.max(Math.abs(step), data.period)); }
  else return;
  event.preventDefault();
});
window.addEventListener("resize", () => { dirty = true; lastIndex = ""; });
offerWindows();
notice(noScene);
if (data.live) {
  for (const id of ["slider", "speed", "loop"]) (el(id).closest("label") ?? el(id)).hidden = true;
  follow();
} else {
  seek(data.begin);
  goTo(location.hash);
  window.addEventListener("hashchange", () => goTo(location.hash));
}
requestAnimationFrame(tick);
