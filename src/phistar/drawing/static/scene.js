// SPDX-License-Identifier: BSD-3-Clause
// Draws the surfaces of a robot by WebGL and plays its motion. `DATA` is made by web_page.py.
"use strict";
(() => {
  const numbers = (text, Type) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Type(bytes.buffer);
  };
  const element = (name) => document.getElementById(name);
  const canvas = element("scene");
  const gl = canvas.getContext("webgl2", { antialias: true, preserveDrawingBuffer: true });
  if (!gl) {
    element("message").textContent = "This browser has no WebGL 2, so the robot cannot be drawn.";
    return;
  }

  // --- programs -------------------------------------------------------------------------------
  const VERTEX = `#version 300 es
    in vec3 position; in vec3 normal;
    uniform mat4 view, projection, pose;
    out vec3 point, side;
    void main() {
      vec4 seen = view * pose * vec4(position, 1.0);
      point = seen.xyz; side = mat3(view * pose) * normal;
      gl_Position = projection * seen;
    }`;
  const FRAGMENT = `#version 300 es
    precision highp float;
    in vec3 point, side;
    uniform vec4 colour; uniform float shade;
    out vec4 result;
    void main() {
      vec3 n = normalize(side);
      if (dot(n, point) > 0.0) n = -n;
      float key = max(dot(n, normalize(vec3(0.4, 0.8, 0.6))), 0.0);
      float fill = max(dot(n, normalize(vec3(-0.6, 0.1, 0.5))), 0.0);
      float light = mix(1.0, 0.38 + 0.52 * key + 0.22 * fill, shade);
      result = vec4(colour.rgb * light, colour.a);
    }`;
  const shader = (kind, source) => {
    const made = gl.createShader(kind);
    gl.shaderSource(made, source);
    gl.compileShader(made);
    if (!gl.getShaderParameter(made, gl.COMPILE_STATUS)) throw gl.getShaderInfoLog(made);
    return made;
  };
  const program = gl.createProgram();
  gl.attachShader(program, shader(gl.VERTEX_SHADER, VERTEX));
  gl.attachShader(program, shader(gl.FRAGMENT_SHADER, FRAGMENT));
  gl.linkProgram(program);
  gl.useProgram(program);
  const uniform = (name) => gl.getUniformLocation(program, name);
  const at = Object.fromEntries(
    ["view", "projection", "pose", "colour", "shade"].map((name) => [name, uniform(name)]));
  const attribute = (name, array) => {
    const place = gl.getAttribLocation(program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, array, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, 3, gl.FLOAT, false, 0, 0);
  };

  // --- surfaces -------------------------------------------------------------------------------
  const normals = (vertices, faces) => {
    const sum = new Float32Array(vertices.length);
    for (let f = 0; f < faces.length; f += 3) {
      const [a, b, c] = [0, 1, 2].map((k) => 3 * faces[f + k]);
      const u = [0, 1, 2].map((k) => vertices[b + k] - vertices[a + k]);
      const w = [0, 1, 2].map((k) => vertices[c + k] - vertices[a + k]);
      const n = [u[1] * w[2] - u[2] * w[1], u[2] * w[0] - u[0] * w[2], u[0] * w[1] - u[1] * w[0]];
      for (const corner of [a, b, c]) for (let k = 0; k < 3; k++) sum[corner + k] += n[k];
    }
    return sum;
  };
  const parts = DATA.parts.map((part) => {
    const vertices = numbers(part.vertices, Float32Array);
    const faces = numbers(part.faces, Uint32Array);
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    attribute("position", vertices);
    attribute("normal", normals(vertices, faces));
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, faces, gl.STATIC_DRAW);
    return { array, count: faces.length, body: part.body, colour: part.rgba };
  });
  const grid = (() => {
    const [half, lines] = [DATA.grid.half, []];
    for (let k = -10; k <= 10; k++) {
      const s = (k / 10) * half;
      lines.push(-half, s, 0, half, s, 0, s, -half, 0, s, half, 0);
    }
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    attribute("position", new Float32Array(lines));
    return { array, count: lines.length / 3 };
  })();

  // --- motion ---------------------------------------------------------------------------------
  const times = numbers(DATA.times, Float32Array);
  const poses = numbers(DATA.poses, Float32Array); // (frames, copies, bodies, 7): x y z, qx qy qz qw
  const followed = numbers(DATA.followed, Float32Array); // (frames, 3) of the camera
  const stride = 7 * DATA.bodies;
  let frame = 0;
  const matrix = (p) => {
    const [x, y, z, a, b, c, d] = poses.subarray(p, p + 7);
    return [
      1 - 2 * (b * b + c * c), 2 * (a * b + c * d), 2 * (a * c - b * d), 0,
      2 * (a * b - c * d), 1 - 2 * (a * a + c * c), 2 * (b * c + a * d), 0,
      2 * (a * c + b * d), 2 * (b * c - a * d), 1 - 2 * (a * a + b * b), 0,
      x, y, z, 1];
  };
  const GHOST = [0.1, 0.35, 0.75];
  const UNIT = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];

  // --- camera ---------------------------------------------------------------------------------
  const camera = { turn: 0.9, lift: 0.35, distance: 2.0 * DATA.radius, target: [...DATA.center] };
  const cross = (a, b) =>
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const axes = () => {
    const { turn, lift } = camera;
    const back = [Math.cos(lift) * Math.cos(turn), Math.cos(lift) * Math.sin(turn), Math.sin(lift)];
    const right = [-Math.sin(turn), Math.cos(turn), 0];
    return { right, up: cross(back, right), back };
  };
  const view = () => {
    const { right, up, back } = axes();
    const eye = camera.target.map((x, k) => x + followed[3 * frame + k] + camera.distance * back[k]);
    const rows = [right, up, back];
    return [0, 1, 2].flatMap((k) => [...rows.map((r) => r[k]), 0])
      .concat(rows.map((r) => -dot(r, eye)), 1);
  };
  const projection = () => {
    const far = 30 * (camera.distance + DATA.radius), near = far / 6000, focal = 1.9;
    const width = canvas.clientWidth / Math.max(canvas.clientHeight, 1);
    return [focal / Math.max(width, 0.6), 0, 0, 0, 0, focal * Math.min(1, width / 0.6), 0, 0,
      0, 0, -(far + near) / (far - near), -1, 0, 0, (-2 * far * near) / (far - near), 0];
  };

  // --- picture --------------------------------------------------------------------------------
  const paint = () => {
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(canvas.clientWidth * scale);
    canvas.height = Math.round(canvas.clientHeight * scale);
    const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(...(dark ? [0.09, 0.1, 0.12] : [0.965, 0.97, 0.98]), 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
    gl.uniformMatrix4fv(at.view, false, view());
    gl.uniformMatrix4fv(at.projection, false, projection());
    const ground = [...UNIT];
    [ground[12], ground[13], ground[14]] = DATA.grid.center;
    gl.uniform1f(at.shade, 0);
    gl.uniform4fv(at.colour, dark ? [0.3, 0.32, 0.36, 1] : [0.8, 0.82, 0.85, 1]);
    gl.uniformMatrix4fv(at.pose, false, ground);
    gl.bindVertexArray(grid.array);
    gl.drawArrays(gl.LINES, 0, grid.count);
    gl.uniform1f(at.shade, 1);
    gl.polygonOffset(1, 4);  // ghosts lie behind a robot that is where they are
    for (let copy = 0; copy < DATA.copies; copy++) {
      const first = (frame * DATA.copies + copy) * stride;
      if (copy === 1) gl.enable(gl.POLYGON_OFFSET_FILL);
      for (const part of parts) {
        if (part.body < 0 && copy > 0) continue;
        if (part.body >= 0 && !Number.isFinite(poses[first + 7 * part.body])) continue;
        const colour = [...part.colour];
        if (copy > 0) GHOST.forEach((x, k) => { colour[k] = 0.25 * colour[k] + 0.75 * x; });
        if (copy > 0) colour[3] *= 0.5;
        gl.uniform4fv(at.colour, colour);
        gl.uniformMatrix4fv(at.pose, false, part.body < 0 ? UNIT : matrix(first + 7 * part.body));
        gl.bindVertexArray(part.array);
        gl.drawElements(gl.TRIANGLES, part.count, gl.UNSIGNED_INT, 0);
      }
    }
    gl.disable(gl.POLYGON_OFFSET_FILL);
    canvas.dataset.frame = frame;
  };
  const show = (number) => {
    frame = Math.min(Math.max(number, 0), times.length - 1);
    element("slider").value = frame;
    element("time").textContent = `${times[frame].toFixed(2)} s`;
    paint();
  };

  // --- play bar -------------------------------------------------------------------------------
  let started = null;
  const tick = (now) => {
    if (started === null) return;
    const span = times[times.length - 1] - times[0];
    const passed = times[0] + (((now - started) / 1000) % Math.max(span, 1e-9));
    let k = 0;
    while (k + 1 < times.length && times[k + 1] <= passed) k++;
    show(k);
    requestAnimationFrame(tick);
  };
  const play = (on) => {
    started = on ? performance.now() - 1000 * (times[frame] - times[0]) : null;
    element("play").textContent = on ? "Pause" : "Play";
    if (on) requestAnimationFrame(tick);
  };
  element("slider").max = times.length - 1;
  element("slider").oninput = (event) => { play(false); show(Number(event.target.value)); };
  element("play").onclick = () => play(started === null);
  if (times.length < 2) element("bar").hidden = true;

  // --- mouse and touch: turn, shift (right button or Shift), zoom (wheel) -----------------------
  let held = null;
  canvas.onpointerdown = (event) => {
    held = [event.clientX, event.clientY, event.button === 2 || event.shiftKey];
    canvas.setPointerCapture(event.pointerId);
  };
  canvas.onpointerup = () => { held = null; };
  canvas.onpointermove = (event) => {
    if (!held) return;
    const [dx, dy] = [event.clientX - held[0], event.clientY - held[1]];
    [held[0], held[1]] = [event.clientX, event.clientY];
    if (held[2]) {
      const { right, up } = axes();
      const step = camera.distance / Math.max(canvas.clientHeight, 1);
      camera.target = camera.target.map((x, k) => x + step * (dy * up[k] - dx * right[k]));
    } else {
      camera.turn -= 0.008 * dx;
      camera.lift = Math.min(1.55, Math.max(-1.55, camera.lift + 0.008 * dy));
    }
    paint();
  };
  canvas.oncontextmenu = (event) => event.preventDefault();
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    camera.distance *= Math.exp(0.001 * event.deltaY);
    paint();
  }, { passive: false });
  window.addEventListener("resize", paint);
  show(0);
  canvas.dataset.ready = "true";
  if (times.length > 1) play(DATA.plays);
})();
