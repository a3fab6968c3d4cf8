// Reading a payload: gzip in base64 around JSON, and what is derived from a trace once.

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
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
