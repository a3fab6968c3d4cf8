// A view as a picture of its own: SVG from the rows that the view draws, with resolved colours.

const PICTURE_COLUMNS = 128; // slots, of a picture that a document still takes
const SANS = "Inter, system-ui, Segoe UI, sans-serif", MONO = "ui-monospace, Menlo, Consolas, monospace";
const LEGENDS = {
  tokens: { wrong: "filler among the tokens of a row" },
  cache: { wrong: "a fault: may be seen, or off by more than rounding" },
  positions: { wrong: "a fault: the wrong position ID, or seen and no token of the row" },
  mask: { seen: "may be seen", unseen: "hidden", leak: "leak: seen, but must not be", loss: "lost: hidden, but must be seen", wrong: "" },
  history: { bonus: "all drafts kept", accepted: "some kept", rejected: "none kept", committed: "nothing was drafted" },
};
const OTHERWISE = {
  "off-value": "K/V differ from a clean run's", unmeasured: "not measured",
  "decade-0": "K/V error below 1e-8", "decade-1": "1e-8 to 1e-6", "decade-2": "1e-6 to 1e-4", "decade-3": "1e-4 to 1e-2",
  "decade-4": "above; the number is the exponent of ten",
};
const LEGEND_GLYPHS = { leak: "!", loss: "−", "off-value": "≠" };

const ruler = document.createElement("canvas").getContext("2d");
function widthOf(text, size, family) {
  ruler.font = `${size}px ${family}`;
  return ruler.measureText(text).width;
}

// XML has no place for control characters, and none for halves of a character.
const xmlText = (text) => escapeText(text.replace(/[\u0000-\u001f\ufffe\uffff]|\p{Cs}/gu, "\ufffd"));
const label = (x, y, text, { size = 12, fill, weight = 400, family = SANS, anchor = "start", more = "" }) =>
  `<text x="${x}" y="${y}" font-family="${family}" font-size="${size}" font-weight="${weight}" fill="${fill}" text-anchor="${anchor}"${more}>${xmlText(text)}</text>`;

// How cells look is asked of the page, so that a picture cannot differ from it.
function styleReader() {
  const probe = document.createElement("div"), known = new Map();
  probe.style.cssText = "position:absolute;visibility:hidden;width:400px";
  root.append(probe);
  const read = (row, strip, look) => {
    probe.className = row;
    probe.innerHTML = `<div class="${strip}s"><${CELL_TAGS[strip]} class="${look}"></${CELL_TAGS[strip]}></div>`;
    return cellStyle(getComputedStyle(probe.firstChild.firstChild));
  };
  return {
    of(row, strip, look) {
      const key = [row, strip, look].join("|");
      if (!known.has(key)) known.set(key, read(row, strip, look));
      return known.get(key);
    },
    end: () => probe.remove(),
  };
}

const opaque = (colour) => (/^transparent$|, 0\)$/.test(colour) ? "none" : colour);

function cellStyle(style) {
  const width = (name) => (["none", "hidden"].includes(style[`${name}Style`]) ? 0 : parseFloat(style[`${name}Width`]));
  const frame = width("outline") ? ["outline", width("outline")] : width("borderTop") ? ["borderTop", width("borderTop")] : null;
  return {
    fill: style.backgroundImage === "none" ? opaque(style.backgroundColor) : "url(#hatch)",
    ink: style.color, weight: style.fontWeight, size: parseFloat(style.fontSize), height: parseFloat(style.height) || 18,
    strike: style.textDecorationLine.includes("line-through"),
    underline: !width("borderTop") && width("borderBottom") ? style.borderBottomColor : null,
    frame: frame && { colour: style[`${frame[0]}Color`], width: frame[1], dash: style[`${frame[0]}Style`] === "dashed" },
  };
}

// Markup of a cell as its glyph and its text.
function plain(markup) {
  const holder = document.createElement("template");
  holder.innerHTML = markup;
  const glyph = holder.content.querySelector("i");
  glyph?.remove();
  return [glyph?.textContent, holder.content.textContent].filter(Boolean).join(" ");
}

function cellMark(style, x, y, width, height, text, size) {
  const round = Math.min(3, height / 5), parts = [];
  if (style.fill !== "none") parts.push(`<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="${round}" fill="${style.fill}"/>`);
  if (style.underline) parts.push(`<rect x="${x}" y="${y + height - 2}" width="${width}" height="2" fill="${style.underline}"/>`);
  if (style.frame) {
    const { colour, width: line, dash } = style.frame;
    parts.push(`<rect x="${x + line / 2}" y="${y + line / 2}" width="${width - line}" height="${height - line}" rx="${round}" fill="none" stroke="${colour}" stroke-width="${line}"${dash ? ` stroke-dasharray="2 2"` : ""}/>`);
  }
  if (text) parts.push(label(x + width / 2, y + height / 2 + size * 0.35, text, {
    size, fill: style.ink, weight: style.weight, family: MONO, anchor: "middle", more: style.strike ? ` text-decoration="line-through"` : "",
  }));
  return parts.join("");
}

// Cells with their places: slots in columns of one width, chips as wide as their text.
function placedCells(row, styles) {
  const isQuery = row.look.includes("query");
  let right = 0;
  return row.cells.map(({ look, markup }) => {
    const style = styles.of(isQuery ? "row query" : "row", row.strip, look);
    const text = plain(markup), size = row.strip === "chip" ? 12 : style.size;
    const width = row.strip === "chip" ? Math.ceil(widthOf(text, size, MONO)) + 8 : 15;
    const x = right;
    right += width + (row.strip === "chip" ? 2 : 1);
    return { look, style, text, size, x, width, right, height: row.strip === "chip" ? 19 : isQuery ? 12 : 18 };
  });
}

const cellsWidth = (cells) => (cells.length ? cells.at(-1).right : 0);

// One lane's view: its title, its rows, and how large it is.
function panel(lane, view, styles, ink) {
  const frame = frameOf(lane, cursor);
  const wide = { ...state, columns: PICTURE_COLUMNS };
  const rows = VIEWS[view].draw(lane, frame, wide);
  const about = { cache: state.model, positions: `${state.model}, as fed`, mask: plain(maskCaption(lane, frame, wide)) }[view];
  const head = label(0, 15, `${lane.title}: ${VIEWS[view].title}`, { size: 15, weight: 650, fill: ink.ink }) +
    label(0, 33, [`round ${frame.round}, ${frame.phase}`, about].filter(Boolean).join(" · "), { fill: ink.soft });
  const headWidth = widthOf(`${lane.title}: ${VIEWS[view].title}`, 17, SANS);
  if (typeof rows === "string")
    return { markup: head + label(0, 58, plain(rows), { fill: ink.soft }), width: 360, height: 66, looks: [] };
  const placed = rows.map((row) => placedCells(row, styles));
  const width = Math.max(...placed.map(cellsWidth)), start = 10 + Math.max(14, ...rows.map((row) => widthOf(plain(row.name), 11, MONO)));
  const alike = view !== "history" && rows[0].strip === "slot" && rows.every((row) => row.first === rows[0].first);
  const ticks = alike ? slotTicks(rows[0], placed[0], start, ink) : "";
  let y = 44 + (ticks ? 12 : 0);
  const body = rows.map((row, place) => {
    const mark = rowMark(row, placed[place], { start, y, width, ink });
    y += row.look.includes("query") ? 14 : 22;
    return mark;
  });
  return {
    markup: head + ticks + body.join(""), width: Math.max(headWidth, start + width + 62), height: y + 2,
    looks: placed.flat().map((cell) => cell.look),
  };
}

function slotTicks(row, cells, start, ink) {
  return cells.flatMap((cell, place) => ((row.first + place) % 5 ? [] : [
    label(start + cell.x + cell.width / 2, 50, `${row.first + place}`, { size: 9, fill: ink.soft, family: MONO, anchor: "middle" }),
  ])).join("");
}

function rowMark(row, cells, { start, y, width, ink }) {
  const isQuery = row.look.includes("query"), middle = y + (isQuery ? 10 : 13);
  const shift = row.strip === "chip" ? width - cellsWidth(cells) : 0;
  const parts = [
    label(0, middle, plain(row.name), { size: isQuery ? 10 : 11, fill: ink.soft, family: isQuery ? MONO : SANS }),
    ...cells.map((cell) => cellMark(cell.style, start + shift + cell.x, y, cell.width, cell.height, cell.text, cell.size)),
    label(start + width + 8, middle, plain(row.end), { size: 11, fill: ink.soft }),
  ];
  return `<g${/\boff\b/.test(row.look) ? ` opacity="0.35"` : ""}>${parts.join("")}</g>`;
}

// The looks that are in the picture, explained, always in one order.
function legendMark(view, looks, width, styles, ink) {
  const words = (name) => LEGENDS[view]?.[name] ?? state.palette[name]?.words ?? OTHERWISE[name] ?? "";
  const order = [...Object.keys(state.palette), ...Object.keys(LEGENDS[view] ?? {}), ...Object.keys(OTHERWISE)];
  const there = new Set(looks.flatMap((look) => look.split(" ")));
  const names = [...new Set(order)].filter((name) => there.has(name) && words(name));
  let x = 0, y = 0;
  const entries = names.map((name) => {
    const style = styles.of("row", "slot", name), text = words(name);
    const glyph = view === "history" ? "" : LEGEND_GLYPHS[name] ?? state.palette[name]?.glyph ?? "";
    const length = 22 + widthOf(text, 11, SANS) + 18;
    if (x && x + length > width) [x, y] = [0, y + 20];
    const mark = cellMark(style, x, y, 16, 14, glyph, 9.5) + label(x + 22, y + 11, text, { size: 11, fill: ink.soft });
    x += length;
    return mark;
  });
  return { markup: entries.join(""), height: entries.length ? y + 16 : 0 };
}

// The chosen view of the chosen lanes, one below the other.
function picture() {
  const own = getComputedStyle(root), colour = (name) => own.getPropertyValue(`--${name}`).trim();
  const ink = { ink: colour("ink"), soft: colour("soft"), line: colour("line"), panel: colour("panel") };
  const styles = styleReader(), view = find(".share-view").value, margin = 16;
  const panels = sharedLanes().map((lane) => panel(lane, view, styles, ink));
  const width = Math.ceil(Math.max(440, ...panels.map((one) => one.width)));
  let y = margin;
  const body = panels.map((one) => {
    const mark = `<g transform="translate(${margin} ${y})">${one.markup}</g>`;
    y += one.height + 18;
    return mark;
  });
  const legend = legendMark(view, panels.flatMap((one) => one.looks), width, styles, ink);
  body.push(`<g transform="translate(${margin} ${y})">${legend.markup}</g>`);
  styles.end();
  const size = { width: width + 2 * margin, height: Math.ceil(y + legend.height + margin) };
  const text = `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${size.height}" viewBox="0 0 ${size.width} ${size.height}">
<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><rect width="5" height="1" fill="${ink.line}"/></pattern></defs>
<rect width="100%" height="100%" fill="${ink.panel}"/>
${body.join("\n")}
</svg>
`;
  return { text, ...size };
}

// Drawn at twice its size, for screens and slides.
async function pixels({ text, width, height }) {
  const image = new Image(), address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    image.src = address;
    await image.decode();
  } finally {
    URL.revokeObjectURL(address);
  }
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
