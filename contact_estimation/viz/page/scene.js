// The 3-D scene: an arm that follows joint positions, and the shapes of an estimate, drawn with WebGL.
"use strict";

// 4 x 4 matrices in columns, as WebGL takes them.
const Matrix = {
  identity: () => Float32Array.of(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1),
  times(a, b) {
    const out = new Float32Array(16);
    for (let c = 0; c < 4; c++)
      for (let r = 0; r < 4; r++)
        out[4 * c + r] = a[r] * b[4 * c] + a[4 + r] * b[4 * c + 1] + a[8 + r] * b[4 * c + 2] + a[12 + r] * b[4 * c + 3];
    return out;
  },
  // Columns x, y, z and origin p.
  frame: (x, y, z, p) => Float32Array.of(...x, 0, ...y, 0, ...z, 0, ...p, 1),
  turn([x, y, z], angle) {
    const c = Math.cos(angle), s = Math.sin(angle), d = 1 - c;
    return Matrix.frame([c + x * x * d, y * x * d + z * s, z * x * d - y * s],
      [x * y * d - z * s, c + y * y * d, z * y * d + x * s], [x * z * d + y * s, y * z * d - x * s, c + z * z * d], [0, 0, 0]);
  },
  shift: (p) => Matrix.frame([1, 0, 0], [0, 1, 0], [0, 0, 1], p),
  scale: ([x, y, z]) => Matrix.frame([x, 0, 0], [0, y, 0], [0, 0, z], [0, 0, 0]),
  quaternion([x, y, z, w], p) {
    return Matrix.frame([1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)],
      [2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)],
      [2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)], p);
  },
  // A frame whose z axis points along a vector.
  along(v, p) {
    const z = Vector.unit(v), k = Math.abs(z[0]) < Math.abs(z[1]) ? 0 : 1;
    const x = Vector.unit(Vector.cross(k ? [0, 1, 0] : [1, 0, 0], z));
    return Matrix.frame(x, Vector.cross(z, x), z, p);
  },
  // Of the eye, and the perspective with the vertical field of view in radians. The picture is moved down and made
  // smaller, because text covers a share of it at the top.
  view(eye, right, up, back) {
    const m = Matrix.frame([right[0], up[0], back[0]], [right[1], up[1], back[1]], [right[2], up[2], back[2]], [0, 0, 0]);
    return Matrix.times(m, Matrix.shift(eye.map((value) => -value)));
  },
  perspective(field, aspect, near, far, down) {
    const f = (1 - 0.7 * down) / Math.tan(field / 2);
    return Float32Array.of(f / aspect, 0, 0, 0, 0, f, 0, 0, 0, down, (far + near) / (near - far), -1, 0, 0, 2 * far * near / (near - far), 0);
  },
};
const Vector = {
  cross: (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]],
  norm: (a) => Math.hypot(...a),
  unit: (a) => a.map((value) => value / (Vector.norm(a) || 1)),
  minus: (a, b) => a.map((value, k) => value - b[k]),
  plus: (a, b, s = 1) => a.map((value, k) => value + s * b[k]),
};

const SHINE = 0.6;  // of what hides behind the arm

const VERTEX = `#version 300 es
in vec3 place, normal;
uniform mat4 model, camera;
uniform vec3 stretch;
uniform float shadow;
out vec3 world, outward;
const vec3 lamp = vec3(0.348, -0.497, 0.795);
void main() {
  vec4 p = model * vec4(place * stretch, 1.0);
  if (shadow > 0.0) { p.xyz -= p.z / lamp.z * lamp; p.z = 0.0015; }
  world = p.xyz; outward = mat3(model) * (normal / stretch);
  gl_Position = camera * p;
}`;
const FRAGMENT = `#version 300 es
precision mediump float;
in vec3 world, outward;
uniform vec4 colour;
uniform vec3 eye;
uniform float lit;
out vec4 pixel;
const vec3 lamp = vec3(0.348, -0.497, 0.795);
void main() {
  if (lit == 0.0) { pixel = colour; return; }
  if (lit == 2.0) {  // the floor, with a line every 0.25 m
    vec2 near = abs(fract(4.0 * world.xy + 0.5) - 0.5) / fwidth(4.0 * world.xy);
    pixel = vec4(colour.rgb - 0.06 * clamp(1.2 - min(near.x, near.y), 0.0, 1.0), 1.0);
    return;
  }
  vec3 n = normalize(outward), v = normalize(eye - world);
  float shade = 0.38 + 0.42 * max(dot(n, lamp), 0.0) + 0.32 * abs(dot(n, v));
  float shine = 0.22 * pow(max(dot(n, normalize(v + lamp)), 0.0), 40.0);
  pixel = vec4((shade * colour.rgb + shine) * colour.a, colour.a);
}`;

class Scene {
  constructor(canvas, about) {
    this.canvas = canvas;
    this.about = about;
    const gl = this.gl = canvas.getContext("webgl2", {antialias: !software(), premultipliedAlpha: true});
    if (!gl) throw new Error("this browser has no WebGL 2; the plots work without it");
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.bindAttribLocation(program, 0, "place");
    gl.bindAttribLocation(program, 1, "normal");
    gl.linkProgram(program);
    gl.useProgram(program);
    this.at = Object.fromEntries(["model", "camera", "stretch", "shadow", "colour", "eye", "lit"].map((name) => [name, gl.getUniformLocation(program, name)]));
    this.links = about.meshes.map((mesh) => ({joint: mesh.joint, colour: [...mesh.colour, 1], buffer: this.upload(mesh)}));
    this.units = Object.fromEntries(Object.entries(about.units).map(([name, mesh]) => [name, this.upload(mesh)]));
    this.floor = this.upload(floorMesh());
    this.quality = 1;
    this.headroom = 0;  // [px] covered by text at the top
    this.reset();
    this.listen();
    gl.enable(gl.DEPTH_TEST);
    gl.enable(gl.CULL_FACE);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  upload(mesh) {
    const gl = this.gl, array = gl.createVertexArray();
    const vertices = typeof mesh.vertices === "string" ? new Float32Array(bytes(mesh.vertices)) : mesh.vertices;
    const corners = typeof mesh.triangles === "string" ? new Uint32Array(bytes(mesh.triangles)) : mesh.triangles;
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, vertices, gl.STATIC_DRAW);
    for (const k of [0, 1]) {
      gl.enableVertexAttribArray(k);
      gl.vertexAttribPointer(k, 3, gl.FLOAT, false, 24, 12 * k);
    }
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, corners, gl.STATIC_DRAW);
    return {array, count: corners.length};
  }

  reset() {
    Object.assign(this, {target: [...this.about.camera.target], distance: this.about.camera.distance,
      azimuth: this.about.camera.azimuth, elevation: this.about.camera.elevation});
    this.changed = true;
  }

  listen() {
    const canvas = this.canvas;
    let last = null;
    canvas.addEventListener("pointerdown", (event) => { last = event; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointerup", () => { last = null; });
    canvas.addEventListener("pointermove", (event) => {
      if (!last) return;
      const dx = event.clientX - last.clientX, dy = event.clientY - last.clientY;
      if (last.button === 2 || event.shiftKey) {
        const [right, up] = this.axes(), step = this.distance / canvas.clientHeight;
        this.target = Vector.plus(Vector.plus(this.target, right, -dx * step), up, dy * step);
      } else {
        this.azimuth -= 0.008 * dx;
        this.elevation = Math.min(1.5, Math.max(-0.3, this.elevation + 0.008 * dy));
      }
      last = {clientX: event.clientX, clientY: event.clientY, button: last.button};
      this.changed = true;
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.distance = Math.min(6, Math.max(0.2, this.distance * Math.exp(0.001 * event.deltaY)));
      this.changed = true;
    }, {passive: false});
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("dblclick", () => this.reset());
  }

  axes() {
    const c = Math.cos(this.elevation), a = this.azimuth;
    const back = [c * Math.cos(a), c * Math.sin(a), Math.sin(this.elevation)];
    const right = [-Math.sin(a), Math.cos(a), 0];
    return [right, Vector.cross(back, right), back];
  }

  // Poses of base and joints at the joint positions q, and of the TCP at the end.
  poses(q) {
    const poses = [Matrix.identity()];
    this.about.links.forEach((link, k) => {
      const move = link.prismatic ? Matrix.shift(link.axis.map((value) => value * q[k])) : Matrix.turn(link.axis, q[k]);
      poses.push(Matrix.times(poses[link.parent], Matrix.times(link.pose, move)));
    });
    poses.push(Matrix.times(poses[this.about.tcp.parent], this.about.tcp.pose));
    return poses;
  }

  draw(q, shapes) {
    const gl = this.gl, canvas = this.canvas, ratio = Math.min(window.devicePixelRatio, 2) * this.quality;
    const width = Math.max(1, Math.round(canvas.clientWidth * ratio)), height = Math.max(1, Math.round(canvas.clientHeight * ratio));
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, {width, height});
    gl.viewport(0, 0, width, height);
    gl.clearColor(0.955, 0.968, 0.985, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    const [right, up, back] = this.axes(), eye = Vector.plus(this.target, back, this.distance);
    const narrow = Math.min(1, width / height), field = 2 * Math.atan(Math.tan(0.35) / narrow);  // [rad] the arm's width fits, too
    const camera = Matrix.times(Matrix.perspective(field, width / height, 0.02, 20, Math.min(0.5, this.headroom / canvas.clientHeight)), Matrix.view(eye, right, up, back));
    this.seen = camera;
    gl.uniformMatrix4fv(this.at.camera, false, camera);
    gl.uniform3fv(this.at.eye, eye);
    const poses = this.poses(q), tcp = poses[poses.length - 1], solid = {shadow: 0, lit: 1};
    this.mesh(this.floor, poses[0], [1, 1, 1], [0.90, 0.91, 0.92, 1], {shadow: 0, lit: 2});
    for (const link of this.links) this.mesh(link.buffer, poses[link.joint], [1, 1, 1], [0.80, 0.81, 0.83, 1], {shadow: 1, lit: 0});
    for (const link of this.links) this.mesh(link.buffer, poses[link.joint], [1, 1, 1], link.colour, solid);
    for (const box of this.about.boxes) this.mesh(this.units.box, box.pose, box.size, [...box.colour, 1], solid);
    const parts = shapes.flatMap((shape) => this.parts(shape, tcp));
    gl.enable(gl.BLEND);
    gl.depthMask(false);
    gl.disable(gl.DEPTH_TEST);  // what the arm hides shines through
    for (const part of parts) if (part.colour[3] > 0.5) this.mesh(part.unit, part.pose, part.size, [...part.colour.slice(0, 3), SHINE], solid);
    gl.enable(gl.DEPTH_TEST);
    gl.depthMask(true);
    for (const part of parts) if (part.colour[3] > 0.5) this.mesh(part.unit, part.pose, part.size, part.colour, solid);
    gl.depthMask(false);
    for (const part of parts) if (part.colour[3] <= 0.5) this.mesh(part.unit, part.pose, part.size, part.colour, solid);
    gl.depthMask(true);
    gl.disable(gl.BLEND);
    this.tcp = [tcp[12], tcp[13], tcp[14]];
  }

  mesh(buffer, pose, size, colour, {shadow, lit}) {
    const gl = this.gl;
    gl.uniformMatrix4fv(this.at.model, false, pose);
    gl.uniform3fv(this.at.stretch, size);
    gl.uniform4fv(this.at.colour, colour);
    gl.uniform1f(this.at.shadow, shadow);
    gl.uniform1f(this.at.lit, lit);
    gl.bindVertexArray(buffer.array);
    gl.drawElements(gl.TRIANGLES, buffer.count, gl.UNSIGNED_INT, 0);
  }

  // What a shape [name, kind, in TCP frame, position or points, tip or quaternion, size, colour] is made of.
  parts([name, kind, atTcp, position, other, size, colour], tcp) {
    const place = (pose) => (atTcp ? Matrix.times(tcp, pose) : pose);
    if (kind === "points") return position.flatMap((point) => this.parts([name, "ellipsoid", atTcp, point, [0, 0, 0, 1], size, colour], tcp));
    if (kind !== "arrow") return [{unit: this.units.sphere, pose: place(Matrix.quaternion(other, position)), size, colour}];
    const along = Vector.minus(other, position), length = Vector.norm(along);
    if (length < 1e-6) return [];
    const head = Math.min(size[2], length), neck = Vector.plus(position, along, 1 - head / length);
    return [
      {unit: this.units.shaft, pose: place(Matrix.along(along, position)), size: [size[0], size[0], length - head], colour},
      {unit: this.units.head, pose: place(Matrix.along(along, neck)), size: [size[1], size[1], head], colour},
    ];
  }
}

// Whether the processor draws: then smooth edges cost more than all the rest.
function software() {
  const gl = document.createElement("canvas").getContext("webgl"), info = gl?.getExtension("WEBGL_debug_renderer_info");
  return info ? /swiftshader|llvmpipe|software/i.test(gl.getParameter(info.UNMASKED_RENDERER_WEBGL)) : false;
}

function bytes(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer;
}

function floorMesh() {
  const r = 1.5, vertices = [];
  for (const [x, y] of [[-r, -r], [r, -r], [r, r], [-r, r]]) vertices.push(x, y, 0, 0, 0, 1);
  return {vertices: new Float32Array(vertices), triangles: new Uint32Array([0, 1, 2, 0, 2, 3])};
}
