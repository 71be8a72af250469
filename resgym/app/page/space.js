// A Newton polyhedron in space that can be turned, by pointer or by keys.
import { makeSvg } from "./common.js";

const [WIDTH, HEIGHT, SCALE] = innerWidth < 600 ? [360, 340, 188] : [560, 430, 262];
const COLOURS = { ink: "#1d2733", muted: "#66727f", faint: "#d5dbe1", border: "#7ba3cc", point: "#1f5fa8", chosen: "#d1540a" };
export const view = { turn: 0.55, tilt: 0.42 };

export function drawSpace(scene, named) {
  const svg = makeSvg("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", tabindex: 0, class: "space",
    width: WIDTH, height: HEIGHT, "font-family": "'DejaVu Sans', Verdana, Arial, sans-serif",
    "aria-label": "Newton polyhedron in space; arrow keys turn it",
  });
  const draw = () => svg.replaceChildren(...shapes(scene, named));
  const turnBy = (right, up) => {
    view.turn -= right;
    view.tilt = Math.min(1.5, Math.max(-0.3, view.tilt + up));
    draw();
  };
  svg.addEventListener("pointerdown", (event) => svg.setPointerCapture(event.pointerId));
  svg.addEventListener("pointermove", (event) => {
    if (event.buttons || event.pointerType === "touch") turnBy(event.movementX * 0.01, event.movementY * 0.008);
  });
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.08], ArrowDown: [0, 0.08] }[event.key];
    if (!step) return;
    event.preventDefault();
    turnBy(...step);
  });
  draw();
  return svg;
}

function project([x, y, z]) {
  const [a, b, c] = [x - 0.5, y - 0.5, z - 0.5];
  const [sin, cos, low, high] = [Math.sin(view.turn), Math.cos(view.turn), Math.sin(view.tilt), Math.cos(view.tilt)];
  const near = cos * a + sin * b;
  return {
    x: WIDTH / 2 + SCALE * (cos * b - sin * a),
    y: HEIGHT / 2 + 12 - SCALE * (high * c - low * near),
    depth: high * near + low * c,
  };
}

const line = (from, to, colour, width, dashes = "none") => makeSvg("line", {
  x1: from.x.toFixed(1), y1: from.y.toFixed(1), x2: to.x.toFixed(1), y2: to.y.toFixed(1),
  stroke: colour, "stroke-width": width, "stroke-dasharray": dashes,
});

const words = (at, text, colour, size, weight = "normal", anchor = "middle") => makeSvg("text", {
  x: at.x.toFixed(1), y: at.y.toFixed(1), fill: colour, "font-size": size, "font-weight": weight, "text-anchor": anchor,
}, text);

function shapes(scene, named) {
  const polygon = (corners, attributes) => makeSvg("polygon", {
    points: corners.map((corner) => `${corner.x.toFixed(1)},${corner.y.toFixed(1)}`).join(" "), ...attributes,
  });
  const above = [];
  const taken = []; // by texts and points
  const drawn = [makeSvg("rect", { width: WIDTH, height: HEIGHT, fill: "#ffffff" })];
  drawn.push(polygon([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]].map(project), { fill: "#f4f6f8" }));
  scene.axes.forEach((axis, index) => {
    const at = (share, beside = 0) => project([0, 1, 2].map((each) => (each === index ? share : each === (index < 2 ? 1 - index : 1) ? -beside : 0)));
    const chosen = named.includes(index);
    drawn.push(line(at(0), at(1), chosen ? COLOURS.chosen : COLOURS.ink, chosen ? 4 : 1.3));
    for (const [share, label] of axis.ticks) {
      if (share === 0) continue;
      drawn.push(line(at(share), at(share, 0.025), COLOURS.muted, 1));
      const place = at(share, 0.075);
      above.push(words({ x: place.x, y: place.y + 4 }, label, COLOURS.muted, 10));
      taken.push({ x: place.x, y: place.y, half: 4 * label.length });
    }
    const end = at(1.09);
    above.push(words({ x: end.x, y: end.y + 5 }, axis.name, chosen ? COLOURS.chosen : COLOURS.ink, 15, chosen ? "bold" : "normal"));
  });
  const faces = scene.faces.map((face) => {
    const corners = face.corners.map(project);
    return { corners, compact: face.compact, depth: corners.reduce((sum, each) => sum + each.depth, 0) / corners.length };
  });
  for (const face of faces.sort((one, other) => one.depth - other.depth)) {
    drawn.push(polygon(face.corners, {
      fill: face.compact ? "#7ba3cc" : "#dfeaf6", "fill-opacity": face.compact ? 0.5 : 0.45,
      stroke: COLOURS.border, "stroke-width": face.compact ? 2 : 0.7, "stroke-linejoin": "round",
    }));
  }
  drawn.push(...above);
  const places = scene.points.map((point, index) => ({ ...point, index, top: project(point.at), floor: project([point.at[0], point.at[1], 0]) }));
  for (const { at, top, floor } of places) {
    if (at[2] > 0.01) drawn.push(line(top, floor, COLOURS.border, 1.2, "4 3"));
  }
  places.sort((one, other) => one.top.depth - other.top.depth);
  for (const { top, vertex } of places) {
    drawn.push(makeSvg("circle", {
      cx: top.x.toFixed(1), cy: top.y.toFixed(1), r: 5.5, stroke: vertex ? "#ffffff" : COLOURS.point,
      fill: vertex ? COLOURS.point : "#ffffff", "stroke-width": 1.5,
    }));
    taken.push({ x: top.x, y: top.y, half: 6 });
  }
  for (const { top, label } of places.reverse()) {
    const half = 3.4 * label.length;
    const free = [[half + 9, -6], [-half - 9, -6], [half + 9, 14], [-half - 9, 14], [0, -12], [0, 20]]
      .map(([right, down]) => ({ x: top.x + right, y: top.y + down, half }))
      .find((place) => place.x - half > 0 && place.x + half < WIDTH && taken.every((other) =>
        Math.abs(other.x - place.x) >= other.half + half || Math.abs(other.y - place.y + 3) > 10));
    if (!free) continue;
    taken.push({ ...free, y: free.y - 3 });
    drawn.push(words(free, label, COLOURS.ink, 11));
  }
  return drawn;
}
