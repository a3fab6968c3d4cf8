// Reading a payload: gzip in base64 around JSON, and what is derived from a trace once.

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// One cursor for lanes of different length: every (round, phase) that any lane has, in order.
function timeline(payload) {
  const order = payload.phases;
  const keys = new Map();
  for (const lane of payload.lanes)
    for (const frame of lane.frames)
      keys.set(frame.round * order.length + order.indexOf(frame.phase), [frame.round, frame.phase]);
  const sorted = [...keys.keys()].sort((a, b) => a - b);
  for (const lane of payload.lanes) prepare(lane, sorted, order);
  return sorted.map((key) => ({ key, round: keys.get(key)[0], phase: keys.get(key)[1] }));
}

function prepare(lane, keys, order) {
  const width = {};
  const broken = {};
  let place = 0, forwards = 0, won = 0, turns = 0, seconds = 0, before = null;
  lane.totals = lane.frames.map((frame) => {
    for (const model of ["target", "draft"]) {
      const slots = frame[model] ? (frame[model].state[0] || []).length : 0;
      const fed = Math.max(0, ...frame.feeds.filter((feed) => feed.model === model)
        .map((feed) => feed.allowed[0][0].length));
      const key = model + frame.round;
      width[key] = Math.max(width[key] || 0, slots, fed);
    }
    forwards += frame.feeds.filter((feed) => feed.model === "target").length;
    seconds += frame.seconds;
    if (frame.phase === "synchronize") {
      frame.length.forEach((length, row) => { won += length - before.length[row]; });
      turns += [...frame.active].filter((bit) => bit === "1").length;
    }
    before = frame;
    for (const { invariant, row } of frame.violations)
      (broken[invariant] ??= { round: frame.round, rows: new Set() }).rows.add(row);
    const faults = Object.fromEntries(Object.entries(broken).map(([name, { round, rows }]) =>
      [name, { round, rows: [...rows].sort((a, b) => a - b) }]));
    return { forwards, won, turns, seconds, faults };
  });
  lane.width = width;
  lane.at = keys.map((key) => {
    while (place + 1 < lane.frames.length && keyOf(lane.frames[place + 1], order) <= key) place += 1;
    return place;
  });
}

function keyOf(frame, order) {
  return frame.round * order.length + order.indexOf(frame.phase);
}

const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escapeText = (text) => String(text).replace(/[&<>"']/g, (character) => escapes[character]);

function tokenText(lane, token) {
  const text = lane.vocabulary[token];
  return text === undefined ? (token < 0 ? "" : `<${token}>`) : text;
}

// Text that runs on: the bytes of fragments are joined, and a character still incomplete waits.
const FRAGMENT = /^<([0-9A-F]{2}(?: [0-9A-F]{2})*)>$/;
function runningText(lane, tokens) {
  const decoder = new TextDecoder();
  let text = "";
  for (const token of tokens) {
    const piece = tokenText(lane, token), bytes = FRAGMENT.exec(piece)?.[1];
    text += bytes ? decoder.decode(Uint8Array.from(bytes.split(" "), (byte) => parseInt(byte, 16)), { stream: true })
      : decoder.decode() + piece;
  }
  return text;
}

// What a chip shows: spaces trimmed, line breaks visible.
function chipText(lane, token) {
  const text = tokenText(lane, token).replace(/\n/g, "↵");
  return escapeText(text.trim() || text.replace(/ /g, "␣"));
}

const isActive = (frame, row) => frame.active[row] === "1";
const isFinished = (frame, row) => frame.finished[row] === "1";
