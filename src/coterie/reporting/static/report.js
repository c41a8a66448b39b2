"use strict";
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const labels = bytes(data.labels, data.k > 256 ? Uint16Array : Uint8Array);
const sure = bytes(data.confidence, Uint8Array);
const coords = Object.fromEntries(Object.entries(data.maps).map(([k, v]) => [k, bytes(v.xy, Uint16Array)]));
const nameOf = (i) => (data.ids ? data.ids[i] : String(i));
const tip = $("tip");

const map = new PointMap($("map"), labels, data.palette, { hover: showTip, pick: (g, i) => { select(g); if (i >= 0) describe(i); } });
themed.push(() => map.later());

function showMap(kind) {
  map.show(coords[kind], data.maps[kind].tags);
  document.querySelectorAll("[data-map]").forEach((b) => b.setAttribute("aria-pressed", b.dataset.map === kind));
}
document.querySelectorAll("[data-map]").forEach((b) => b.addEventListener("click", () => showMap(b.dataset.map)));
showMap(data.maps.tsne ? "tsne" : "pca");
$("zoom-in").addEventListener("click", () => map.zoom(1.5));
$("zoom-out").addEventListener("click", () => map.zoom(1 / 1.5));
$("reset").addEventListener("click", () => { select(-1); map.mark(-1); map.reset(); });

// -- a row under the pointer ---------------------------------------------------------------
const sheets = [];
function sheet(index, done) { // decoded when first needed, so that the page opens at once
  if (!sheets[index]) {
    sheets[index] = new Image();
    sheets[index].src = data.sprites.sheets[index];
  }
  sheets[index].decode().then(() => done(sheets[index]));
}

function drawSprite(canvas, i) {
  const s = data.sprites;
  canvas.hidden = !s || i % s.step !== 0;
  if (canvas.hidden) return;
  const slot = i / s.step, inside = slot % s.per_sheet;
  canvas.dataset.row = i;
  sheet(Math.floor(slot / s.per_sheet), (image) => {
    if (canvas.dataset.row !== String(i)) return; // the pointer has moved on
    const [w, h] = [canvas.width = s.width, canvas.height = s.height];
    const x = (inside % s.columns) * w, y = Math.floor(inside / s.columns) * h;
    canvas.getContext("2d").drawImage(image, x, y, w, h, 0, 0, w, h);
  });
}

function rowText(i) {
  return `${nameOf(i)} · cluster ${labels[i]}` + (data.soft ? ` · confidence ${(sure[i] / 255).toFixed(2)}` : "");
}

function showTip(i, x, y) {
  tip.hidden = i < 0;
  if (i < 0) return;
  tip.querySelector("p").textContent = rowText(i);
  tip.querySelector("q").textContent = data.lines ? data.lines[i] || "" : "";
  tip.querySelector("q").hidden = !(data.lines && data.lines[i]);
  drawSprite(tip.querySelector("canvas"), i);
  const box = tip.getBoundingClientRect();
  const left = x + 18 + box.width > innerWidth ? x - box.width - 18 : x + 18;
  tip.style.left = Math.max(4, left) + "px";
  tip.style.top = Math.max(4, Math.min(y + 12, innerHeight - box.height - 8)) + "px";
}

function describe(i) {
  map.mark(i);
  $("status").textContent = rowText(i);
  showNear(i);
}

// -- the rows next to a picked one ---------------------------------------------------------
const near = data.near ? bytes(data.near, Uint32Array) : null, beside = near ? near.length / data.n : 0;
function showNear(i) {
  $("near").hidden = !near || i < 0;
  if ($("near").hidden) return;
  const items = Array.from(near.subarray(beside * i, beside * (i + 1)), (j) => {
    const item = document.createElement("li"), button = document.createElement("button");
    const canvas = document.createElement("canvas"), words = document.createElement("span");
    button.type = "button";
    button.dataset.row = j;
    words.textContent = rowText(j) + (data.lines && data.lines[j] ? ` · ${data.lines[j]}` : "");
    drawSprite(canvas, j);
    button.append(canvas, words);
    item.append(button);
    return item;
  });
  $("near").querySelector("ul").replaceChildren(...items);
}

// -- selecting a cluster ---------------------------------------------------------------------
function select(cluster, scroll = false) {
  map.pick(cluster);
  document.querySelectorAll("[data-cluster]").forEach((e) => {
    const on = Number(e.dataset.cluster) === cluster;
    e.classList.toggle("on", on);
    if (e.tagName === "BUTTON") e.setAttribute("aria-pressed", on);
  });
  if (cluster < 0) {
    $("status").textContent = "";
    map.mark(-1);
    showNear(-1);
    return;
  }
  showNear(-1);
  const size = data.sizes[cluster];
  $("status").textContent = `Cluster ${cluster}: ${size.toLocaleString("en")} of ${data.n.toLocaleString("en")}` +
    (data.names[cluster] ? ` · ${data.names[cluster]}` : "");
  const card = $(`cluster-${cluster}`), item = document.querySelector(`#list [data-cluster="${cluster}"]`);
  if (item) {
    const list = $("list"), top = item.offsetTop - list.offsetTop;
    if (top < list.scrollTop || top > list.scrollTop + list.clientHeight - 40) list.scrollTop = top - 60;
  }
  if (card && scroll) {
    if (card.tagName === "DETAILS") card.open = true;
    card.scrollIntoView({ block: "start" });
  }
}

document.addEventListener("click", (e) => {
  const row = e.target.closest("[data-row]"), pick = e.target.closest("[data-cluster]");
  if (row && row.tagName === "BUTTON") {
    const i = Number(row.dataset.row);
    select(labels[i]);
    describe(i);
    $("map-section").scrollIntoView({ block: "start" });
  } else if (pick && (pick.tagName === "BUTTON" || pick.classList.contains("pick"))) {
    const cluster = Number(pick.dataset.cluster);
    select(map.picked === cluster && !pick.dataset.card ? -1 : cluster, Boolean(pick.dataset.card));
  }
});
document.addEventListener("keydown", (e) => {
  if (e.target.matches("input, select, textarea")) return;
  if (e.key === "Escape") select(-1);
  if (e.key === "n" || e.key === "p") {
    const step = e.key === "n" ? 1 : -1;
    select(map.picked < 0 && step < 0 ? data.k - 1 : (map.picked + step + data.k) % data.k);
  }
  // arrows walk inside a strip of pictures, so that a strip is one stop of the tab key
  const strip = e.target.closest && e.target.closest(".strip");
  if (strip && (e.key === "ArrowRight" || e.key === "ArrowLeft")) {
    const items = [...strip.querySelectorAll("button")];
    const next = items[items.indexOf(e.target) + (e.key === "ArrowRight" ? 1 : -1)];
    if (next) next.focus();
  }
});

// -- search --------------------------------------------------------------------------------
$("search").addEventListener("submit", (e) => {
  e.preventDefault();
  const want = $("row").value.trim();
  if (!want) return;
  let i = -1;
  if (!data.ids) i = /^\d+$/.test(want) && Number(want) < data.n ? Number(want) : -1;
  else {
    i = data.ids.indexOf(want);
    if (i < 0) i = data.ids.findIndex((n) => n.toLowerCase().includes(want.toLowerCase()));
  }
  if (i < 0) {
    $("status").textContent = `No row is called “${want}”.`;
    return;
  }
  select(labels[i]);
  describe(i);
  map.centre(i, Math.max(map.view.zoom, 3));
});

// -- sorting the list, filtering the cards -------------------------------------------------
$("sort").addEventListener("change", () => {
  const list = $("list"), by = $("sort").value;
  const key = (b) => (by === "number" ? Number(b.dataset.cluster) : by === "size" ? -Number(b.dataset.size) : Number(b.dataset.trust));
  [...list.children].sort((a, b) => key(a.firstElementChild) - key(b.firstElementChild)).forEach((e) => list.append(e));
});

// -- from one centre to another ------------------------------------------------------------
if (data.paths) {
  const from = $("from"), to = $("to"), way = $("way"), steps = data.path_steps;
  const walk = () => {
    const a = Number(from.value), b = Number(to.value);
    const found = data.paths[`${Math.min(a, b)}-${Math.max(a, b)}`];
    way.hidden = !found;
    $("no-way").hidden = Boolean(found);
    if (!found) return;
    way.setAttribute("aria-label", `pictures on the way from the centre of cluster ${a} to that of cluster ${b}`);
    const image = new Image();
    image.src = found;
    image.decode().then(() => {
      const side = image.width / steps;
      way.width = image.width;
      way.height = image.height;
      for (let i = 0; i < steps; i++) { // each pair is stored once; the way back is read backwards
        const j = a < b ? i : steps - 1 - i;
        way.getContext("2d").drawImage(image, j * side, 0, side, image.height, i * side, 0, side, image.height);
      }
    });
  };
  from.addEventListener("change", walk);
  to.addEventListener("change", walk);
  walk();
}
window.coterie = { map, select, data };
