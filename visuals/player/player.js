// The player: one cursor over all lanes, moved by buttons, keys and the scrubber.

const root = element.querySelector("#player");
const find = (selector) => root.querySelector(selector);
const state = { model: "target", row: 0, columns: 32, palette: props.palette, longestRound: {} };
let payload = null, steps = [], cursor = 0, wanted = null;

function laneShell(lane) {
  const head = (title, view, extra = "") =>
    `<h3>${title}<span class="caption" data-caption="${view}"></span>${extra}</h3>`;
  const large = (view) => `<button class="enlarge" data-large="${view}" aria-label="Open ${view} large" title="Open large">⤢</button>`;
  return `<section class="lane" data-lane="${escapeText(lane.strategy)}" aria-label="${escapeText(lane.title)}">
    <h2>${escapeText(lane.title)} <small>${escapeText(lane.summary)}</small><span data-part="verdict"></span></h2>
    <p class="stats" data-part="stats"></p>
    <p class="said" data-part="sentence"></p>
    ${head("Tokens", "tokens")}<div data-view="tokens"></div>
    ${head("KV cache", "cache", large("cache"))}<div data-view="cache"></div>
    ${head("Position IDs", "positions", large("positions"))}<div data-view="positions"></div>
    ${head("Attention mask", "mask", large("mask"))}<div data-view="mask"></div>
    <div class="invariants" data-view="invariants"></div>
    <div class="why" data-part="cause"></div>
    ${head("Round time", "round")}<div data-view="round"></div>
    ${head("Output against the reference", "outputs")}<div data-view="outputs"></div>
  </section>`;
}

function show(next) {
  payload = next;
  if (payload.link) putAddress(payload.link);
  steps = timeline(payload);
  state.row = Math.min(state.row, payload.lanes[0].prompts.length - 1);
  state.longestRound = {};
  for (const lane of payload.lanes) {
    const perRound = {};
    for (const frame of lane.frames)
      if (frame.phase !== "prefill") perRound[frame.round] = (perRound[frame.round] || 0) + frame.seconds;
    for (const [round, seconds] of Object.entries(perRound))
      state.longestRound[round] = Math.max(state.longestRound[round] || 0, seconds);
  }
  find(".lanes").innerHTML = payload.lanes.map(laneShell).join("");
  find(".row-picker").innerHTML = payload.lanes[0].prompts.map((_, row) => `<option value="${row}">row ${row}</option>`).join("");
  find(".origin").textContent = payload.origin;
  find(".segments").innerHTML = steps.map((step, place) => `<i class="${step.phase}" data-flag="${flag(place)}"></i>`).join("");
  find("input[type=range]").max = steps.length - 1;
  measureColumns();
  go(0);
}

// The address makes the same run again, for whoever opens it; a chosen theme stays in it.
function putAddress(link) {
  const query = new URLSearchParams(link), theme = new URLSearchParams(location.search).get("__theme");
  if (theme) query.set("__theme", theme);
  history.replaceState(history.state, "", `?${query}`);
}

const frameOf = (lane, place) => lane.frames[lane.at[place]];
const isFresh = (lane, place) => place === 0 || lane.at[place] !== lane.at[place - 1];

// A cross where an invariant breaks for the first time in a lane.
function flag(place) {
  for (const lane of payload.lanes) {
    if (!isFresh(lane, place)) continue;
    const now = broken(lane, place), before = place ? broken(lane, place - 1) : new Set();
    if ([...now].some((name) => !before.has(name))) return "✗";
  }
  return "";
}

const broken = (lane, place) => new Set(Object.keys(lane.totals[lane.at[place]].faults));

function measureColumns() {
  const lane = find(".lane");
  if (!lane) return;
  const inside = lane.clientWidth - 24 - 20 - 52 - 12;
  state.columns = Math.max(12, Math.floor(inside / 18));
  root.style.setProperty("--columns", state.columns);
}

function paint(place) {
  cursor = place;
  const step = steps[place];
  for (const lane of payload.lanes) paintLane(find(`[data-lane="${CSS.escape(lane.strategy)}"]`), lane, place);
  write(find(".story"), payload.stories[step.phase]);
  write(find(".phases"), `<span>Round <b>${step.round}</b></span>` + payload.phases
    .filter((phase) => steps.some((other) => other.phase === phase))
    .map((phase) => `<span class="${phase === step.phase ? "on" : ""}">${phase[0].toUpperCase()}${phase.slice(1)}</span>`).join(""));
  find(".segments .current")?.classList.remove("current");
  find(".segments").children[place].classList.add("current");
  const range = find("input[type=range]");
  range.value = place;
  range.setAttribute("aria-valuetext", `round ${step.round}, ${step.phase}`);
  drawCard();
  if (find("dialog").open) drawLarge();
  afterPaint(() => {
    Object.assign(root.dataset, {
      frame: place, frames: steps.length, round: step.round, phase: step.phase, live: payload.live,
    });
  });
}

// Called in an animation frame: a message posted there arrives once that frame is painted.
function afterPaint(done) {
  const channel = new MessageChannel();
  channel.port1.onmessage = done;
  channel.port2.postMessage(null);
}

const VIEWS = { tokens: tokensView, cache: cacheView, positions: positionsView, mask: maskView };

function paintLane(section, lane, place) {
  const number = lane.at[place], frame = lane.frames[number];
  const last = number === lane.frames.length - 1;
  section.classList.toggle("over", last && place < steps.length - 1);
  for (const [name, view] of Object.entries(VIEWS))
    drawView(section.querySelector(`[data-view="${name}"]`), view(lane, frame, state));
  const cause = lane.causes[number];
  const parts = {
    "part=verdict": verdictMarkup(lane, frame, last),
    "part=stats": statsMarkup(lane, number),
    "part=sentence": last && !isFresh(lane, place) ? "Finished: all rows are done." : lane.sentences[number],
    "part=cause": cause && `<b>Why it goes wrong</b><ol>${cause}</ol>`,
    "view=invariants": invariantsMarkup(lane, number),
    "view=round": roundMarkup(lane, frame, state),
    "view=outputs": outputsMarkup(lane, frame, state),
  };
  for (const [name, markup] of Object.entries(parts)) write(section.querySelector(`[data-${name}]`), markup);
  captions(section, lane, frame);
}

function captions(section, lane, frame) {
  const caption = (view) => section.querySelector(`[data-caption="${view}"]`);
  const range = slotRange(lane, frame, state);
  write(caption("tokens"), frame.phase === "draft" ? "drafted" : "accepted this round");
  write(caption("cache"), `${state.model}, ${range}`);
  write(caption("positions"), "as fed");
  write(caption("mask"), `row ${state.row}: ${maskCaption(lane, frame, state)}`);
  write(caption("round"), roundCaption(lane, frame));
}

function go(place) {
  if (!payload) return;
  wanted = Math.max(0, Math.min(steps.length - 1, place));
  requestAnimationFrame(() => {
    if (wanted === null) return;
    const next = wanted;
    wanted = null;
    paint(next);
  });
}

const current = () => wanted ?? cursor;

function nextFault() {
  for (let place = current() + 1; place < steps.length; place += 1)
    if (flag(place)) return place;
  return current();
}

function firstBroken(lane, invariant) {
  const number = lane.frames.findIndex((frame) => frame.violations.some((v) => v.invariant === invariant));
  return lane.at.indexOf(number);
}

const MOVES = {
  first: () => 0, previous: () => current() - 1, next: () => current() + 1,
  last: () => steps.length - 1, fault: nextFault,
};
const KEYS = { ArrowLeft: "previous", ArrowRight: "next", Home: "first", End: "last" };

document.addEventListener("keydown", (event) => {
  if (!root.isConnected || !payload || event.altKey || event.ctrlKey || event.metaKey) return;
  const at = event.target;
  const ownRange = at === find("input[type=range]");
  if (!ownRange && at.closest?.("input, textarea, select, [contenteditable], [role=listbox]")) return;
  const move = KEYS[event.key];
  if (!move) return;
  event.preventDefault();
  go(MOVES[move]());
});

root.addEventListener("click", (event) => {
  const at = event.target;
  const on = (attribute) => at.closest(`[data-${attribute}]`)?.dataset[attribute];
  if (at.closest("[data-close]")) find("dialog").close();
  else if (on("go")) go(MOVES[on("go")]());
  else if (on("model")) chooseModel(on("model"));
  else if (on("invariant")) {
    const lane = payload.lanes.find((other) => other.strategy === at.closest(".lane").dataset.lane);
    go(firstBroken(lane, on("invariant")));
  } else if (on("large")) openLarge(at.closest(".lane").dataset.lane, on("large"));
  else if (on("row") !== undefined) chooseRow(Number(on("row")));
});
find("input[type=range]").addEventListener("input", (event) => go(Number(event.target.value)));
find(".row-picker").addEventListener("change", (event) => chooseRow(Number(event.target.value)));

function chooseRow(row) {
  state.row = row;
  find(".row-picker").value = row;
  go(current());
}

function chooseModel(model) {
  state.model = model;
  for (const button of root.querySelectorAll("[data-model]"))
    button.setAttribute("aria-pressed", button.dataset.model === model);
  go(current());
}

// The card tells of the cell under the pointer, also while the frames go by under it.
const TOLD = "[data-chip], [data-row] [data-slot]:not(.free)";
let pointed = null;
function drawCard() {
  const told = pointed?.isConnected && pointed.matches(TOLD);
  find(".card").hidden = !told;
  if (!told) return;
  const lane = payload.lanes.find((other) => other.strategy === pointed.closest(".lane").dataset.lane);
  find(".card").innerHTML = cellDetails(lane, frameOf(lane, cursor), state, pointed);
}

root.addEventListener("mouseover", (event) => {
  pointed = event.target.closest(TOLD);
  drawCard();
  if (!pointed) return;
  const card = find(".card");
  const box = pointed.getBoundingClientRect(), frame = root.getBoundingClientRect();
  const left = Math.min(box.left - frame.left, frame.width - card.offsetWidth - 8);
  card.style.translate = `${Math.max(0, left)}px ${box.bottom - frame.top + 4}px`;
});

root.addEventListener("mouseleave", () => {
  pointed = null;
  drawCard();
});

let large = null;
function openLarge(strategy, view) {
  large = { lane: payload.lanes.find((lane) => lane.strategy === strategy), view };
  find("dialog").showModal();
  loadPlotly(props.plotly).then(drawLarge, (error) => { find(".plot").textContent = error.message; });
}

function drawLarge() {
  const figure = largeFigure(large.lane, frameOf(large.lane, cursor), large.view, state);
  find("dialog b").textContent = `${large.lane.title}, round ${steps[cursor].round}, ${steps[cursor].phase}`;
  if (figure) window.Plotly.react(find(".plot"), figure.data, figure.layout,
    { responsive: true, displaylogo: false });
  else find(".plot").textContent = "This strategy uses no draft model.";
}

new ResizeObserver(() => {
  const before = state.columns;
  measureColumns();
  if (payload && before !== state.columns) go(current());
}).observe(root);

let shown = null;
async function receive() {
  if (!props.value || props.value === shown) return;
  shown = props.value;
  show(await unpack(props.value));
}
watch("value", receive);
receive();
