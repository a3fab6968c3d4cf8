// The run as a page that needs no server: the server's empty page with a payload in it.

async function packedAgain(content) {
  const stream = new Blob([JSON.stringify(content)]).stream().pipeThrough(new CompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let text = "";
  for (let place = 0; place < bytes.length; place += 32768)
    text += String.fromCharCode(...bytes.subarray(place, place + 32768));
  return btoa(text);
}

// What is there now, as a recording that opens where one looks; figures are for large views, and the
// rest is derived anew.
function recording() {
  const { run, by_hand, share, gone, link, file, lanes, ...kept } = payload;
  const recorded = lanes.map(({ figures, totals, verdicts, at, ...lane }) => ({ ...lane, frames: traceOf(lane).frames }));
  return { ...kept, live: "recorded", look: noteLook(new URLSearchParams()).toString(), lanes: recorded };
}

async function pageFile() {
  const [before, after] = await server.blank_page(null);
  return before + await packedAgain(recording()) + after;
}
