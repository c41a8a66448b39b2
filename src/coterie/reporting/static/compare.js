"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const maps = data.maps.map((m, i) => {
  const map = new PointMap(document.getElementById(`map-${i}`), bytes(m.labels, Uint16Array), data.palette, {
    pick: (cluster) => {
      const next = cluster === map.picked ? -1 : cluster; // a second click clears
      maps.forEach((other) => other.pick(next));
    },
  });
  map.show(bytes(m.xy, Uint16Array), m.tags);
  themed.push(() => map.later());
  return map;
});
document.addEventListener("keydown", (e) => {
  if (e.key === "Escape") maps.forEach((m) => m.pick(-1));
});
window.coterie = { maps, data };
