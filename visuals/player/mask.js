// The mask of the chosen row: queries x slots, leaks and losses marked.

const QUERIES_SHOWN = 6;

// What was fed in this phase; where nothing was, what the next forward will be allowed to see.
function maskOf(frame, row) {
  const feeds = frame.feeds.filter((feed) => feed.position[row].some((position) => position >= 0));
  if (feeds.length) {
    const model = feeds.some((feed) => feed.model === "target") ? "target" : "draft";
    const queries = feeds.filter((feed) => feed.model === model).flatMap((feed) =>
      feed.token[row].map((token, query) => ({
        token, allowed: feed.allowed[row][query], should: feed.should[row][query],
        place: feed.expected[row][query],
        filler: feed.expected[row][query] < 0,
      })));
    return { model, queries: queries.filter((query) => !query.filler), fed: true };
  }
  const cache = frame.target;
  const should = cache.expected[row].map((place) => (place >= 0 ? "1" : "0")).join("");
  const any = cache.visible[row].includes("1");
  return {
    model: "target", fed: false,
    queries: any ? [{ token: -1, allowed: cache.visible[row], should }] : [],
  };
}

function maskView(lane, frame, state) {
  const { model, queries, fed } = maskOf(frame, state.row);
  if (!queries.length)
    return `Row ${state.row} is not in the batch now.`;
  const { start, end } = rowWindows(lane, frame, model, state)[state.row];
  const shown = queries.slice(-QUERIES_SHOWN);
  return shown.map((query) => {
    const cells = [];
    for (let slot = start; slot < end; slot += 1) cells.push(maskCell(query, slot));
    const name = fed ? chipText(lane, query.token) : "next";
    return { look: "row query", name, strip: "slot", first: start, cells, end: "" };
  });
}

const MASK_CELLS = {
  "11": { look: "seen", markup: "" }, "00": { look: "unseen", markup: "" },
  "10": { look: "leak wrong", markup: "!" }, "01": { look: "loss wrong", markup: "−" },
};

function maskCell(query, slot) {
  if (slot >= query.allowed.length) return FREE;
  return MASK_CELLS[query.allowed[slot] + query.should[slot]];
}

function maskCaption(lane, frame, state) {
  const { model, queries, fed } = maskOf(frame, state.row);
  if (!queries.length) return `row ${state.row}`;
  const count = (bits) => new Set(queries.flatMap((query) => [...query.allowed].flatMap(
    (bit, slot) => (bit + query.should[slot] === bits ? [slot] : [])))).size;
  const leaks = count("10"), losses = count("01");
  const fault = [leaks && `${leaks} slot${leaks > 1 ? "s" : ""} leak`, losses && `${losses} lost`].filter(Boolean);
  const what = fed ? `fed to the ${model}` : "what the next query may see";
  const cut = queries.length > QUERIES_SHOWN ? `, last ${QUERIES_SHOWN} of ${queries.length} queries` : "";
  return `row ${state.row}: ${fault.length ? `<b class="bad">✗ ${fault.join(", ")}</b> · ` : ""}${what}${cut}`;
}
