// The player: lanes of views, painted where the cursor is.

const root = element.querySelector("#player");
const find = (selector) => root.querySelector(selector);
const state = {
  model: "target", shows: "state", row: 0, columns: 32, palette: props.palette, views: new Set(),
};
let payload = null, steps = [], cursor = 0, wanted = null;

// In the order of a lane; `on` is what a new visitor sees.
const VIEWS = {
  pool: { title: "Pool", on: true, markup: poolMarkup, has: (lane) => lane.strategy === "exspec" },
  tokens: { title: "Tokens", on: true, draw: tokensView },
  cache: { title: "KV cache", on: true, draw: cacheView, large: true },
  positions: { title: "Position IDs", on: true, draw: positionsView, large: true },
  mask: { title: "Attention mask", on: true, draw: maskView, large: true },
  invariants: { title: "Invariants", on: true, markup: invariantsMarkup },
  history: { title: "Acceptance history", on: true, draw: historyView },
  work: { title: "Work", on: true, markup: workMarkup },
  outputs: { title: "Output", on: true, markup: outputsMarkup },
  source: { title: "Source of synchronize", on: true, markup: sourceMarkup },
  table: { title: "Table", on: false, markup: tableMarkup },
};
for (const [name, view] of Object.entries(VIEWS)) if (view.on) state.views.add(name);

function laneShell(lane) {
  const large = (name) => `<button class="enlarge" data-large="${name}" aria-label="Open ${name} large" title="Open large">⤢</button>`;
  // A view that a lane has not keeps its place, so that rows of all lanes stand side by side.
  const views = Object.entries(VIEWS).map(([name, view]) => (view.has?.(lane) ?? true ? `
    <div class="view" data-of="${name}">
      <h3>${view.title}<span class="caption" data-caption="${name}"></span>${view.large ? large(name) : ""}</h3>
      <div data-view="${name}"></div>${name === "invariants" ? `<div class="why" data-part="cause"></div>` : ""}
    </div>` : `<div class="view" data-of="${name}"></div>`));
  return `<section class="lane" data-lane="${escapeText(lane.name)}" aria-label="${escapeText(lane.title)}">
    <header><h2>${escapeText(lane.title)} <small${lane.fault ? ` class="bad"` : ""}>${escapeText(lane.fault ? `broken: ${lane.fault.title}` : lane.summary)}</small><span data-part="verdict"></span></h2>
    <p class="stats" data-part="stats"></p>
    ${lane.fault ? `<p class="broken">${escapeText(lane.fault.words)}</p>` : ""}
    <p class="said" data-part="sentence"></p></header>
    ${views.join("")}
  </section>`;
}

// Take a whole payload: the lanes anew, the cursor at the first phase.
function show(next) {
  payload = next;
  const { roles, slot_states, invariants } = payload;
  for (const lane of payload.lanes) {
    const { frames } = lane;
    Object.assign(lane, {
      roles, slot_states, invariants, frames: [], totals: [], width: {}, roundSeconds: {}, verdicts: [],
      ended: !payload.run,
    });
    absorb(lane, frames);
  }
  state.row = Math.min(state.row, payload.lanes[0].prompts.length - 1);
  find('[data-toggle="pool"]').hidden = !payload.lanes.some(VIEWS.pool.has);
  root.style.setProperty("--parts", Object.keys(VIEWS).length + 1);
  find(".lanes").innerHTML = payload.lanes.map(laneShell).join("");
  find(".row-picker").innerHTML = payload.lanes[0].prompts.map((_, row) => `<option value="${row}">row ${row}</option>`).join("");
  for (const name of Object.keys(VIEWS)) toggleView(name, state.views.has(name));
  cursor = 0;
  wanted = locked = pointed = null;
  columnsChanged();
  measureColumns();
  go(0);
}

// The scrubber as long as the run is now.
function columnsChanged() {
  steps = timeline(payload);
  root.classList.toggle("empty", !steps.length);
  find(".segments").innerHTML = steps.map(({ phase, flags }) =>
    `<i class="${phase}${flags.ragged ? " ragged" : ""}${flags.moved ? " moved" : ""}" data-flag="${flags.fault || flags.divergence ? "✗" : ""}"></i>`).join("");
  find("input[type=range]").max = Math.max(0, steps.length - 1);
  if (steps.length && root.dataset.frame !== undefined) root.dataset.frames = steps.length;
}

const laneOf = (node) => payload.lanes.find((lane) => lane.name === node.closest(".lane").dataset.lane);
const frameOf = (lane, place) => lane.frames[lane.at[place]];

function measureColumns() {
  const lane = find(".lane");
  if (!lane) return;
  const inside = lane.clientWidth - 24 - 20 - 52 - 12;
  state.columns = Math.max(12, Math.floor(inside / 16));
  root.style.setProperty("--columns", state.columns);
}

function paint(place) {
  const forward = place === cursor + 1;
  cursor = place;
  const step = steps[place];
  for (const lane of payload.lanes) {
    const section = find(`[data-lane="${CSS.escape(lane.name)}"]`);
    paintLane(section, lane, place);
    if (forward && isFresh(lane, place)) slide(section, frameOf(lane, place));
  }
  write(find(".story"), payload.stories[step.phase]);
  write(find(".phases"), `<span>Round <b>${step.round}</b></span>` + payload.phases
    .filter((phase) => steps.some((other) => other.phase === phase))
    .map((phase) => (phase === step.phase ? `<span class="on">${capital(phaseWords(step))}</span>` : `<span>${capital(phase)}</span>`)).join(""));
  find(".segments .current")?.classList.remove("current");
  find(".segments").children[place].classList.add("current");
  const range = find("input[type=range]");
  range.value = place;
  range.setAttribute("aria-valuetext", `round ${step.round}, ${phaseWords(step)}`);
  drawHighlight();
  if (find("dialog.large").open) drawLarge();
  afterPaint(() => {
    Object.assign(root.dataset, {
      frame: place, frames: steps.length, round: step.round, phase: step.phase,
      live: isRunning() ? "running" : payload.live,
    });
    noteAddress();
  });
}

// Called in an animation frame: a message posted there arrives once that frame is painted.
function afterPaint(done) {
  const channel = new MessageChannel();
  channel.port1.onmessage = done;
  channel.port2.postMessage(null);
}

function paintLane(section, lane, place) {
  const number = lane.at[place], frame = lane.frames[number];
  const last = lane.ended && number === lane.frames.length - 1;
  section.classList.toggle("over", last && place < steps.length - 1);
  for (const [name, view] of Object.entries(VIEWS)) {
    const node = state.views.has(name) && section.querySelector(`[data-view="${name}"]`);
    if (!node) continue;
    if (view.draw) drawView(node, view.draw(lane, frame, state));
    else writeParts(node, [view.markup(lane, frame, state, number)].flat());
  }
  const cause = lane.causes[number];
  const parts = {
    verdict: verdictMarkup(lane, frame, last),
    stats: statsMarkup(lane, number),
    sentence: last && !isFresh(lane, place) ? "Finished: all rows are done." : lane.sentences[number],
    cause: cause && `<b>Why it goes wrong</b><ol>${cause}</ol>`,
  };
  for (const [name, markup] of Object.entries(parts)) write(section.querySelector(`[data-part=${name}]`), markup);
  captions(section, lane, frame);
}

// Realignment seen as movement: rows slide from where their slots were.
function slide(section, frame) {
  const shifts = frame.shifts[state.model];
  if (!shifts?.some(Boolean) || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const strip of section.querySelectorAll(":is([data-view=cache], [data-view=positions]) .slots")) {
    const shift = shifts[strip.parentNode.dataset.row];
    const width = strip.clientWidth / state.columns;
    if (shift) strip.animate([{ translate: `${-shift * width}px` }, { translate: "0" }], { duration: 280, easing: "ease-out" });
  }
}

function captions(section, lane, frame) {
  const caption = (view, text) => write(section.querySelector(`[data-caption="${view}"]`), text);
  if (VIEWS.pool.has(lane)) caption("pool", poolCaption(lane, frame));
  caption("tokens", frame.phase === "draft" ? "drafted" : "accepted this round");
  const shown = state.shows === "error" ? "power of ten of the K/V error" : slotRange(lane, frame, state);
  const moved = frame.slots_moved && frame.bytes_moved
    ? `<b>${frame.slots_moved} slots moved, ${size(frame.bytes_moved)}</b> · ` : "";
  caption("cache", `${moved}${state.model}, ${shown}`);
  caption("positions", "as fed");
  caption("mask", maskCaption(lane, frame, state));
  caption("history", "drafts kept, by round");
  caption("work", workCaption(lane, frame));
  caption("outputs", "against the reference");
}

function go(place) {
  if (!steps.length) return;
  wanted = Math.max(0, Math.min(steps.length - 1, place));
  requestAnimationFrame(() => {
    // By then another run may have taken the place of this one, and have no frame yet.
    if (wanted === null || !steps.length) return;
    const next = Math.min(wanted, steps.length - 1);
    wanted = null;
    paint(next);
  });
}

const current = () => wanted ?? cursor;

// To the phase in which an invariant broke first in a lane, its first broken cell lit.
function goToBroken(lane, invariant) {
  const number = lane.frames.findIndex((frame) => frame.violations.some((one) => one.invariant === invariant));
  const frame = lane.frames[number], { row, model, slot } = frame.violations.find((one) => one.invariant === invariant);
  if (model) choose("model", model);
  const place = model ? frame[model].expected[row][slot] ?? -1 : lane.prompts[row].length + slot;
  locked = { row, place, lane: lane.name, ...(model && { slot, model }) };
  chooseRow(row);
  go(lane.at.indexOf(number));
}

function chooseRow(row) {
  state.row = row;
  find(".row-picker").value = row;
  go(current());
}

function press(name, value) {
  for (const button of root.querySelectorAll(`[data-${name}]`))
    button.setAttribute("aria-pressed", button.dataset[name] === value);
}

function choose(name, value) {
  state[name] = value;
  press(name, value);
  go(current());
}

function toggleView(name, on) {
  state.views[on ? "add" : "delete"](name);
  find(`[data-toggle="${name}"]`).setAttribute("aria-pressed", on);
  for (const view of root.querySelectorAll(`[data-of="${name}"]`)) view.hidden = !on;
}

find(".views").innerHTML = Object.entries(VIEWS).map(([name, view]) =>
  `<button data-toggle="${name}" aria-pressed="true">${view.title}</button>`).join("");

root.addEventListener("click", (event) => {
  const at = event.target;
  const on = (attribute) => at.closest(`[data-${attribute}]`)?.dataset[attribute];
  if (at.closest("[data-close]")) at.closest("dialog").close();
  else if (on("go")) move(on("go"));
  else if (on("model")) choose("model", on("model"));
  else if (on("shows")) choose("shows", on("shows"));
  else if (on("toggle")) {
    toggleView(on("toggle"), !state.views.has(on("toggle")));
    go(current());
  } else if (on("invariant")) goToBroken(laneOf(at), on("invariant"));
  else if (on("large")) openLarge(laneOf(at), on("large"));
  else if (on("row") !== undefined) lock(at);
});
find(".row-picker").addEventListener("change", (event) => chooseRow(Number(event.target.value)));

let large = null;
function openLarge(lane, view) {
  large = { lane, view };
  find("dialog.large").showModal();
  loadPlotly(props.plotly).then(drawLarge, (error) => { find(".plot").textContent = error.message; });
}

function drawLarge() {
  const figure = largeFigure(large.lane, frameOf(large.lane, cursor), large.view, state);
  find("dialog.large b").textContent = `${large.lane.title}, round ${steps[cursor].round}, ${phaseWords(steps[cursor])}`;
  if (figure) window.Plotly.react(find(".plot"), figure.data, figure.layout,
    { responsive: true, displaylogo: false });
  else find(".plot").textContent = "This strategy uses no draft model.";
}
