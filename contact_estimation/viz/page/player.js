// Plays a recording, or follows a live arm: which frame is shown, and everything around the 3-D view.
"use strict";

const KEEP = 12;  // [s] of live frames
const el = (id) => document.getElementById(id);
const data = JSON.parse(el("data").textContent);
const observers = Object.keys(data.observers);
const state = {time: 0, playing: true, observer: observers[0], frames: 0, drawn: 0, index: -1, connected: !data.live, live: data.live};
window.contactView = state;  // what is shown, for tests and the curious
let dirty = true, lastTick = 0, lastIndex = "", slow = 0, lastMessage = 0, posture = null;

let scene = null;
try {
  scene = new Scene(el("scene"), data.scene);
} catch (error) {
  notice(error.message);
}
const nothing = [null, null, null];
const truth = (frame, name) => frame.truth?.[name] ?? null;
const force = new Plot(el("forceplot"), (f) => [...(f.force ?? nothing), ...(data.truth ? truth(f, "force") ?? nothing : [])], -5, 5, {dashed: data.truth ? 3 : 0});
const kilo = (value) => (value === null ? null : value / 1e3);
const stiffness = new Plot(el("stiffnessplot"), (f) => [kilo(f.stiffness), ...(data.truth ? [kilo(truth(f, "stiffness"))] : [])], 0, 1, {dashed: data.truth ? 1 : 0});
const modes = new Plot(el("modeplot"), (f) => f.probabilities || [], 0, 1, {stacked: true});

el("title").textContent = data.title;
el("subtitle").textContent = data.subtitle;
for (const name of observers) el("observer").append(new Option(name, name));
el("observer").disabled = observers.length < 2;
el("observer").onchange = () => choose(el("observer").value);
el("legend").innerHTML = data.legend.map(([name, colour]) => `<span><i style="background:${colour}"></i>${name}</span>`).join(" ");

function frames() { return data.observers[state.observer].frames; }

function choose(name) {
  state.observer = name;
  el("observer").value = name;
  lastIndex = "";
  dirty = true;
}

function notice(text) {
  el("notice").textContent = text;
  el("notice").hidden = !text;
}

// Say why what is shown is not of now, and let it look so; an empty text where it is.
function stale(text) {
  notice(text);
  document.body.classList.toggle("stale", Boolean(text));
}

// The last frame at or before a time.
function find(list, time) {
  let low = 0, high = list.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (list[middle].t <= time + 1e-9) low = middle; else high = middle - 1;
  }
  return low;
}

function seek(time) {
  state.time = Math.min(Math.max(time, data.begin), data.end);
  el("slider").value = state.time;
  dirty = true;
}

function play(on) {
  state.playing = on;
  el("play").textContent = on ? "Pause" : "Play";
  if (on && state.time >= data.end - 1e-6 && !data.live) seek(data.begin);
}

function show(frame) {
  state.force = frame.valid ? frame.force : null;
  state.mode = frame.valid ? frame.mode : "invalid";
  state.shapes = frame.shapes.map((shape) => shape[0]);
  el("mode").textContent = state.mode;
  el("mode").style.background = !frame.valid ? "#9a2c00" : frame.mode === "free" ? "#1a7f37" : "#0b5cad";
  el("force").textContent = frame.valid ? told(frame) : frame.reason;
  if (scene) scene.headroom = el("head").offsetTop + el("head").offsetHeight;
  if (frame.q.every((angle) => angle !== null)) posture = frame.q;
  if (scene && posture) scene.draw(posture, frame.shapes);
  const list = frames(), own = data.observers[state.observer], count = own.modes.length;
  const xyz = COLOURS.slice(0, 3);
  force.draw(list, frame.t, [...xyz, ...xyz]);
  stiffness.draw(list, frame.t, [COLOURS[1], COLOURS[6]]);
  modes.draw(list, frame.t, COLOURS);
  const key = (names, colours) => names.map((name, k) => `<b style="color:${colours[k]}">${name}</b>`).join(" ");
  el("forcekey").innerHTML = key(["x", "y", "z"], xyz) + (data.truth ? " truth dashed" : "");
  el("stiffnesskey").textContent = frame.stiffness === null ? "–" : (frame.stiffness / 1e3).toFixed(1);
  el("modekey").innerHTML = count ? own.modes.map((name, k) => `<b style="color:${COLOURS[k % 7]}">${escape(name)}</b> ${frame.probabilities?.[k]?.toFixed(2) ?? "–"}`).join(" ") : "this observer has no modes";
  el("clock").textContent = data.live ? `live ${frame.t.toFixed(1)} s` : `${frame.t.toFixed(2)} / ${data.end.toFixed(2)} s`;
  state.drawn += 1;
}

// The force in words. On a link away from the tool, the truth of a recording is of the tool only.
function told(frame) {
  const newtons = (vector) => `${Vector.norm(vector).toFixed(1)} N`, tool = frame.truth?.force;
  const truth = tool ? ` (truth${frame.link_force ? " at the tool" : ""} ${newtons(tool)})` : "";
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
  if (data.live && lastMessage && now - lastMessage > 2000 && state.connected) stale("no estimates for two seconds");
  if (list.length && (dirty || scene?.changed)) {
    const index = data.live ? list.length - 1 : find(list, state.time), name = `${state.observer} ${list[index].t}`;
    if (name !== lastIndex || scene?.changed) {
      show(list[index]);
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
  lastMessage = performance.now();
  stale("");
  const own = data.observers[message.observer];
  if (!own) return;
  if (message.modes?.length) own.modes = message.modes;  // an invalid estimate has none
  const list = own.frames;
  if (list.length && message.t < list[list.length - 1].t) list.length = 0;  // time jumped back
  list.push(message);
  while (list[0].t < message.t - KEEP) list.shift();
  if (message.observer === state.observer && state.playing) dirty = true;
}

function follow() {
  const source = new EventSource("live");
  source.onopen = () => { state.connected = true; stale("waiting for estimates"); lastMessage = 0; };
  source.onerror = () => { state.connected = false; stale("connection lost: the server does not answer; trying again"); };
  source.onmessage = (event) => receive(JSON.parse(event.data));
}

el("play").onclick = () => play(!state.playing);
el("slider").min = data.begin;
el("slider").max = data.end;
el("slider").oninput = () => { play(false); seek(Number(el("slider").value)); };
document.addEventListener("keydown", (event) => {
  if (event.target.matches("select")) return;
  const step = {ArrowLeft: -0.1, ArrowRight: 0.1}[event.key];
  if (event.key === " ") play(!state.playing);
  else if (step && !data.live) { play(false); seek(state.time + step); }
  else return;
  event.preventDefault();
});
window.addEventListener("resize", () => { dirty = true; lastIndex = ""; });
if (data.live) {
  for (const id of ["slider", "speed", "loop"]) (el(id).closest("label") ?? el(id)).hidden = true;
  stale("waiting for estimates");
  follow();
} else {
  seek(data.begin);
}
requestAnimationFrame(tick);
