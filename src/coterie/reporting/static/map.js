"use strict";
// A scatter of many points on a canvas. Points are stamped straight into pixels: 70,000 of them
// take a few milliseconds without a graphics card, where 70,000 canvas arcs would take seconds.

function bytes(text, Type) {
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return new Type(out.buffer);
}

function rgb(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

class PointMap {
  // labels: cluster of each point; palette: hex colours; on: {hover, pick}
  constructor(canvas, labels, palette, on = {}) {
    Object.assign(this, { canvas, labels, on });
    this.colors = palette.map(rgb);
    this.context = canvas.getContext("2d");
    this.n = labels.length;
    this.order = this.shuffled();
    this.view = { x: 0.5, y: 0.5, zoom: 1 };
    this.picked = -1;
    this.marked = -1;
    this.hovered = -1;
    this.tags = [];
    this.listen();
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  // a fixed shuffle: no cluster may cover another just because its rows come last
  shuffled() {
    const order = Uint32Array.from({ length: this.n }, (_, i) => i);
    let state = 12345;
    for (let i = this.n - 1; i > 0; i--) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      const j = state % (i + 1), keep = order[i];
      order[i] = order[j];
      order[j] = keep;
    }
    return order;
  }

  // coords: Uint16Array x0 y0 x1 y1 ...; tags: [{cluster, x, y}] in the same units
  show(coords, tags = []) {
    this.coords = coords;
    this.tags = tags;
    const low = [65535, 65535], high = [0, 0];
    for (let i = 0; i < 2 * this.n; i++) {
      if (coords[i] < low[i & 1]) low[i & 1] = coords[i];
      if (coords[i] > high[i & 1]) high[i & 1] = coords[i];
    }
    this.span = [0, 1].map((a) => Math.max(0.1, (high[a] - low[a]) / 65535));
    this.reset();
  }

  resize() {
    const box = this.canvas.getBoundingClientRect();
    if (!box.width) return;
    this.ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.width = this.canvas.width = Math.round(box.width * this.ratio);
    this.height = this.canvas.height = Math.round(box.height * this.ratio);
    this.image = this.context.createImageData(this.width, this.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.draw();
  }

  scale() {
    return 0.93 * Math.min(this.width / this.span[0], this.height / this.span[1]) * this.view.zoom;
  }

  place(i) { // device pixels of point i
    const s = this.scale();
    return [
      (this.coords[2 * i] / 65535 - this.view.x) * s + this.width / 2,
      (this.coords[2 * i + 1] / 65535 - this.view.y) * s + this.height / 2,
    ];
  }

  reset() {
    this.view = { x: 0.5, y: 0.5, zoom: 1 };
    this.later();
  }

  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const zoom = Math.max(0.7, Math.min(200, this.view.zoom * factor)), before = this.scale();
    const x = (px - this.width / 2) / before + this.view.x;
    const y = (py - this.height / 2) / before + this.view.y;
    this.view.zoom = zoom;
    const after = this.scale();
    this.view.x = x - (px - this.width / 2) / after;
    this.view.y = y - (py - this.height / 2) / after;
    this.later();
  }

  pan(dx, dy) { // device pixels
    const s = this.scale();
    this.view.x = Math.max(-0.2, Math.min(1.2, this.view.x - dx / s));
    this.view.y = Math.max(-0.2, Math.min(1.2, this.view.y - dy / s));
    this.later();
  }

  centre(i, zoom) {
    this.view = { x: this.coords[2 * i] / 65535, y: this.coords[2 * i + 1] / 65535, zoom };
    this.later();
  }

  pick(cluster) {
    this.picked = cluster;
    this.later();
  }

  mark(i) {
    this.marked = i;
    this.later();
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  radius() {
    const base = this.n > 30000 ? 1.25 : this.n > 6000 ? 1.8 : this.n > 1500 ? 2.6 : 3.6;
    return base * this.ratio * Math.min(3, Math.pow(this.view.zoom, 0.35));
  }

  // offsets and coverage (0..256) of a disc with a soft edge
  stamp(radius) {
    // in a crowd nobody sees faint corners, and leaving them out nearly halves the work
    const reach = Math.ceil(radius), least = this.n > 30000 ? 0.35 : 0.05, out = [];
    for (let y = -reach; y <= reach; y++)
      for (let x = -reach; x <= reach; x++) {
        const cover = Math.max(0, Math.min(1, radius + 0.5 - Math.hypot(x, y)));
        if (cover > least) out.push([x, y, cover]);
      }
    return out;
  }

  draw() {
    if (!this.pixels || !this.coords) return;
    const style = getComputedStyle(this.canvas);
    this.paper = rgb(style.getPropertyValue("--paper").trim());
    this.ink = style.getPropertyValue("--ink").trim();
    this.dim = rgb(style.getPropertyValue("--dim").trim());
    const [r, g, b] = this.paper;
    this.pixels.fill((255 << 24) | (b << 16) | (g << 8) | r);
    if (this.picked >= 0) {
      this.stampAll((label) => label !== this.picked, 0.55, true);
      this.stampAll((label) => label === this.picked, 0.95, false);
    } else this.stampAll(null, this.n > 30000 ? 0.75 : 0.85, false);
    this.context.putImageData(this.image, 0, 0);
    this.drawTags();
    if (this.hovered >= 0) this.ring(this.hovered, 1.5);
    if (this.marked >= 0) this.ring(this.marked, 3);
  }

  stampAll(which, opacity, grey) {
    const { coords, labels, order, width, height, pixels, colors } = this;
    const stamp = this.stamp(this.radius());
    const reach = Math.ceil(this.radius()), m = stamp.length;
    const shift = new Int32Array(m), weight = new Int32Array(m);
    stamp.forEach(([x, y, c], i) => {
      shift[i] = y * width + x;
      weight[i] = Math.round(c * opacity * 256);
    });
    const s = this.scale() / 65535, many = colors.length;
    const ox = width / 2 - this.view.x * this.scale(), oy = height / 2 - this.view.y * this.scale();
    for (let q = 0; q < this.n; q++) {
      const i = order[q], label = labels[i];
      if (which && !which(label)) continue;
      const x = (coords[2 * i] * s + ox) | 0, y = (coords[2 * i + 1] * s + oy) | 0;
      if (x < reach || y < reach || x >= width - reach || y >= height - reach) continue;
      const c = grey ? this.dim : colors[label % many], at = y * width + x;
      const r = c[0], g = c[1], b = c[2];
      for (let j = 0; j < m; j++) {
        const p = at + shift[j], old = pixels[p], a = weight[j];
        const or = old & 255, og = (old >> 8) & 255, ob = (old >> 16) & 255;
        pixels[p] = (255 << 24) | ((ob + (((b - ob) * a) >> 8)) << 16) |
          ((og + (((g - og) * a) >> 8)) << 8) | (or + (((r - or) * a) >> 8));
      }
    }
  }

  drawTags() {
    const c = this.context, s = this.scale(), size = 12 * this.ratio;
    c.font = `600 ${size}px system-ui, sans-serif`;
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.lineJoin = "round";
    const taken = [];
    const first = this.tags.filter((t) => t.cluster === this.picked);
    for (const tag of first.concat(this.tags)) {
      const x = (tag.x / 65535 - this.view.x) * s + this.width / 2;
      const y = (tag.y / 65535 - this.view.y) * s + this.height / 2;
      // with 200 clusters the numbers would cover the points: a number needs its own place
      if (taken.some(([a, b]) => Math.abs(a - x) < 1.6 * size && Math.abs(b - y) < 1.2 * size)) continue;
      taken.push([x, y]);
      c.globalAlpha = this.picked < 0 || tag.cluster === this.picked ? 1 : 0.45;
      c.lineWidth = 4 * this.ratio;
      c.strokeStyle = `rgb(${this.paper.join(",")})`;
      c.strokeText(tag.cluster, x, y);
      c.fillStyle = this.ink;
      c.fillText(tag.cluster, x, y);
    }
    c.globalAlpha = 1;
  }

  ring(i, width) {
    const [x, y] = this.place(i), c = this.context;
    c.beginPath();
    c.arc(x, y, this.radius() + 4 * this.ratio, 0, 7);
    c.lineWidth = width * this.ratio;
    c.strokeStyle = this.ink;
    c.stroke();
  }

  // nearest point within reach of a place in device pixels, or -1; a plain scan is fast enough
  nearest(px, py, reach = 14) {
    const s = this.scale(), { coords } = this;
    const x = ((px - this.width / 2) / s + this.view.x) * 65535;
    const y = ((py - this.height / 2) / s + this.view.y) * 65535;
    let best = -1, least = ((reach * this.ratio) / s * 65535) ** 2;
    for (let i = 0; i < this.n; i++) {
      const dx = coords[2 * i] - x, dy = coords[2 * i + 1] - y, d = dx * dx + dy * dy;
      if (d < least) {
        if (this.picked >= 0 && this.labels[i] !== this.picked) continue;
        least = d;
        best = i;
      }
    }
    return best;
  }

  listen() {
    const canvas = this.canvas, fingers = new Map();
    let moved = 0;
    const at = (e) => {
      const box = canvas.getBoundingClientRect();
      return [(e.clientX - box.left) * this.ratio, (e.clientY - box.top) * this.ratio];
    };
    canvas.addEventListener("wheel", (e) => {
      // a page that cannot be scrolled past its map is a trap: zoom only when asked to
      if (!e.ctrlKey && !e.metaKey && document.activeElement !== canvas) return;
      e.preventDefault();
      this.zoom(Math.exp(-e.deltaY * 0.002), ...at(e));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (e) => {
      canvas.setPointerCapture(e.pointerId);
      fingers.set(e.pointerId, at(e));
      moved = 0;
    });
    canvas.addEventListener("pointermove", (e) => {
      const now = at(e), old = fingers.get(e.pointerId);
      if (!old) return this.hover(this.nearest(...now), e.clientX, e.clientY);
      if (fingers.size === 2) {
        const [a, b] = [...fingers.values()], before = Math.hypot(a[0] - b[0], a[1] - b[1]);
        fingers.set(e.pointerId, now);
        const [c, d] = [...fingers.values()], after = Math.hypot(c[0] - d[0], c[1] - d[1]);
        this.zoom(after / (before || 1), (c[0] + d[0]) / 2, (c[1] + d[1]) / 2);
      } else this.pan(now[0] - old[0], now[1] - old[1]);
      moved += Math.abs(now[0] - old[0]) + Math.abs(now[1] - old[1]);
      fingers.set(e.pointerId, now);
    });
    const end = (e) => {
      if (fingers.delete(e.pointerId) && moved < 5 * this.ratio && e.type === "pointerup") {
        const i = this.nearest(...at(e));
        if (this.on.pick) this.on.pick(i < 0 ? -1 : this.labels[i], i);
      }
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", () => this.hover(-1));
    canvas.addEventListener("dblclick", (e) => this.zoom(2, ...at(e)));
    canvas.addEventListener("keydown", (e) => {
      const step = 60 * this.ratio;
      const keys = {
        ArrowLeft: () => this.pan(step, 0), ArrowRight: () => this.pan(-step, 0),
        ArrowUp: () => this.pan(0, step), ArrowDown: () => this.pan(0, -step),
        "+": () => this.zoom(1.4), "=": () => this.zoom(1.4), "-": () => this.zoom(1 / 1.4),
        "0": () => this.reset(),
      };
      if (!keys[e.key] || e.ctrlKey || e.metaKey) return;
      e.preventDefault();
      keys[e.key]();
    });
  }

  hover(i, x, y) {
    if (i !== this.hovered) {
      this.hovered = i;
      this.later();
    }
    if (this.on.hover) this.on.hover(i, x, y);
  }
}
