// Plots of the last seconds, drawn on plain canvases.
"use strict";

const WINDOWS = [10, 60, 600, 3600];  // [s] that a plot may show
const span = {window: WINDOWS[0], gap: 0.5};  // [s] shown; a longer time without a frame is left open
const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"];

class Plot {
  // values(frame) gives one number or null per curve; low and high are the least range.
  constructor(canvas, values, low, high, {dashed = 0, stacked = false} = {}) {
    Object.assign(this, {canvas, values, low, high, dashed, stacked});
  }

  draw(frames, now, colours) {
    const canvas = this.canvas, ratio = window.devicePixelRatio, w = canvas.clientWidth, h = canvas.clientHeight;
    const width = Math.max(1, Math.round(w * ratio)), height = Math.max(1, Math.round(h * ratio));
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, {width, height});
    const ink = canvas.getContext("2d", {willReadFrequently: true});
    ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    ink.clearRect(0, 0, w, h);
    const end = Math.max(now, frames[0].t + span.window);
    const shown = frames.slice(find(frames, end - span.window - 0.1), find(frames, now + 1e-6) + 1);
    const rows = shown.map((frame) => this.values(frame));
    let low = this.low, high = this.high;
    for (const row of rows) for (const value of row) if (value !== null) { low = Math.min(low, value); high = Math.max(high, value); }
    const margin = this.stacked ? 0 : 0.06 * (high - low), left = 38, bottom = 16;
    if (low < this.low) low -= margin;
    if (high > this.high) high += margin;
    const x = (t) => left + (w - left - 4) * (t - end + span.window) / span.window;
    const y = (value) => 4 + (h - 4 - bottom) * (high - value) / (high - low);
    this.axes(ink, {x, y, low, high, left, w, h, bottom, end});
    ink.save();
    ink.beginPath();
    ink.rect(left, 2, w - left - 4, h - bottom);
    ink.clip();
    const count = Math.max(0, ...rows.map((row) => row.length));  // an invalid frame has none
    if (this.stacked) this.areas(ink, shown, rows, count, colours, x, y);
    else for (let k = 0; k < count; k++) this.curve(ink, shown, rows, k, colours[k], x, y);
    ink.restore();
  }

  axes(ink, {x, y, low, high, left, w, h, bottom, end}) {
    ink.font = "11px system-ui,sans-serif";
    ink.fillStyle = "#57606a";
    ink.strokeStyle = "#e4e8ec";
    ink.lineWidth = 1;
    ink.textAlign = "right";
    ink.textBaseline = "middle";
    const step = nice((high - low) / 4);
    for (let value = Math.ceil(low / step) * step; value <= high + 1e-9; value += step) {
      ink.beginPath();
      ink.moveTo(left, y(value));
      ink.lineTo(w - 4, y(value));
      ink.stroke();
      ink.fillText(`${+value.toPrecision(4)}`, left - 5, Math.max(7, y(value)));
    }
    ink.textAlign = "center";
    ink.textBaseline = "bottom";
    const every = nice(span.window / Math.max(1, Math.floor((w - left) / 60)));
    for (let t = Math.ceil((end - span.window) / every) * every; t <= end - 0.02 * span.window; t += every) ink.fillText(`${+t.toFixed(3)} s`, x(t), h);
  }

  curve(ink, shown, rows, k, colour, x, y) {
    ink.strokeStyle = colour;
    ink.lineWidth = 1.5;
    ink.setLineDash(k >= rows[0].length - this.dashed ? [4, 3] : []);
    ink.beginPath();
    let pen = false, before = -Infinity, pixel = null, least = 0, most = 0;
    rows.forEach((row, i) => {
      if (shown[i].t - before > span.gap) pen = false;
      before = shown[i].t;
      if (row[k] === null || row[k] === undefined) { pen = false; return; }
      const at = x(shown[i].t), up = y(row[k]);
      // In one column of pixels only what goes beyond the values before is drawn.
      if (pen && Math.round(at) === pixel && up >= least && up <= most && i + 1 < rows.length) return;
      if (pen) ink.lineTo(at, up);
      else ink.moveTo(at, up);
      if (!pen || Math.round(at) !== pixel) least = most = up;
      least = Math.min(least, up);
      most = Math.max(most, up);
      pixel = Math.round(at);
      pen = true;
    });
    ink.stroke();
    ink.setLineDash([]);
  }

  areas(ink, shown, rows, count, colours, x, y) {
    ink.globalAlpha = 0.75;
    for (const [begin, end] of stretches(shown, rows)) {
      const times = shown.slice(begin, end).map((frame) => x(frame.t));
      let floor = times.map(() => 0);
      for (let k = 0; k < count; k++) {
        const top = floor.map((value, i) => value + (rows[begin + i][k] || 0));
        ink.fillStyle = colours[k];
        ink.beginPath();
        top.forEach((value, i) => ink.lineTo(times[i], y(value)));
        for (let i = floor.length - 1; i >= 0; i--) ink.lineTo(times[i], y(floor[i]));
        ink.fill();
        floor = top;
      }
    }
    ink.globalAlpha = 1;
  }
}

// The last frame at or before a time, or the first one.
function find(list, time) {
  let low = 0, high = list.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (list[middle].t <= time + 1e-9) low = middle; else high = middle - 1;
  }
  return low;
}

// First and last + 1 of the frames that follow each other without a gap, all with values.
function stretches(shown, rows) {
  const found = [];
  rows.forEach((row, i) => {
    if (!row.length) return;
    const follows = i && rows[i - 1].length && shown[i].t - shown[i - 1].t <= span.gap;
    if (follows) found[found.length - 1][1] = i + 1;
    else found.push([i, i + 1]);
  });
  return found;
}

function nice(raw) {
  const power = 10 ** Math.floor(Math.log10(raw)), share = raw / power;
  return power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
}
