// Runs as they are computed, and the address that makes them again.

let running = null, following = false, noted = "", opening = openingOf(location.search);
const POLL = 80; // milliseconds between two looks at a run

const isRunning = () => running !== null;
const follow = (on) => { following = on; };
const counts = () => payload.lanes.map((lane) => lane.frames.length);
const isOver = () => payload.lanes.every((lane) => lane.ended);

function say(words) {
  write(find(".state"), words);
}

function describe(note = "") {
  const { live, pair, machine, run } = payload;
  const how = { running: "running", paused: "paused: → runs the next phase" };
  const what = !run || isOver() ? "" : ` · ${how[isRunning() ? "running" : "paused"]}`;
  const share = run && !isOver() ? ` · ${Math.round(100 * (payload.share || 0))} %` : "";
  say(`<b>${live}</b>${what}${share} · ${escapeText(pair)} · ${escapeText(machine)}${note && ` · <b class="bad">${escapeText(note)}</b>`}`);
  find("[data-run=stop]").hidden = !isRunning();
  find("[data-run=on]").hidden = !run || isRunning() || isOver() || payload.gone;
  if (root.dataset.live && steps.length) root.dataset.live = isRunning() ? "running" : live;
  find(".share").hidden = !isRunning();
  find(".share").value = payload.share || 0;
}

// Ask for what a run has gained, one question at a time: each says what the player already has.
// True if there was an answer that it could use.
let asked = Promise.resolve();
function ask(question, run) {
  asked = asked.then(async () => {
    if (payload.run !== run || isOver()) return false;
    return take(await question([run, counts()]), run);
  }).catch((error) => {
    stopLooking(`the server does not answer: ${error?.message ?? error}`);
    return false;
  });
  return asked;
}

async function take(packed, run) {
  if (payload.run !== run) return false;
  if (packed === null) {
    payload.gone = true;
    stopLooking("this run is no longer on the server: press Run again");
    return false;
  }
  const piece = await unpack(packed);
  if (payload.run !== run) return false;
  piece.lanes.forEach(({ frames, sentences, causes, ...rest }, place) => {
    const lane = payload.lanes[place];
    lane.sentences.push(...sentences);
    lane.causes.push(...causes);
    Object.assign(lane, rest, { ended: piece.ended[place] });
    absorb(lane, frames);
  });
  payload.share = piece.share;
  const before = steps.length;
  columnsChanged();
  describe(piece.failure);
  if (piece.failure) running = null;
  if (!before || following) go(following ? steps.length - 1 : 0);
  else go(current());
  arrive();
  return true;
}

async function look(run) {
  while (running === run) {
    if (!await ask(server.frames, run) || running !== run) return;
    if (isOver()) return stopLooking();
    await new Promise((resume) => setTimeout(resume, POLL));
  }
}

function stopLooking(note) {
  running = null;
  describe(note);
}

async function runOn() {
  const { run } = payload;
  running = run;
  describe();
  await server.resume(run);
  trigger("play", { run });
  look(run);
}

// The run rests once the phase that was under way has come.
async function stopRun() {
  const { run } = payload;
  await server.stop(run);
  await ask(server.frames, run);
  if (running === run) stopLooking();
}

// Past the last frame a person drives the models by hand.
let driving = false;
async function runNextPhase() {
  const { run } = payload;
  if (!run || isRunning() || driving || payload.gone || isOver()) return;
  driving = true;
  const next = steps.length;
  const done = await ask(server.advance, run);
  driving = false;
  if (done) go(next);
}

root.addEventListener("click", (event) => {
  const what = event.target.closest("[data-run]")?.dataset.run;
  if (what === "stop") stopRun();
  else if (what === "on") runOn();
});

// The address holds what made the picture: settings from the server, and what is looked at.
function openingOf(search) {
  const query = new URLSearchParams(search), complaints = [];
  const number = (name) => {
    if (!query.has(name)) return undefined;
    const value = Number(query.get(name));
    if (Number.isInteger(value) && value >= 0) return value;
    complaints.push(`The link gives ${name} as "${query.get(name).slice(0, 40)}", no whole number.`);
    return undefined;
  };
  const among = (name, known) => {
    const value = query.get(name);
    if (value === null || known.includes(value)) return value ?? undefined;
    complaints.push(`The link gives ${name} as "${value.slice(0, 40)}", which is not here.`);
    return undefined;
  };
  const names = query.get("views")?.split(",");
  const views = names?.filter((name) => VIEWS[name]);
  if (names && views.length < names.length) complaints.push("The link names views that are not here.");
  return {
    frame: number("frame"), row: number("row"), model: among("cache", ["target", "draft"]),
    shows: among("shows", ["state", "error"]), views, complaints, live: query.has("prompts"),
  };
}

// What the link asked to look at, once the run has come so far.
function arrive() {
  if (!opening || opening.live !== (payload.live === "live")) return;
  if (opening.frame >= steps.length && !isOver()) return;
  const { frame, row, model, shows, views, complaints } = opening;
  opening = null;
  if (views) for (const name of Object.keys(VIEWS)) toggleView(name, views.includes(name));
  if (model) choose("model", model);
  if (shows) choose("shows", shows);
  if (row !== undefined) chooseRow(Math.min(row, payload.lanes[0].prompts.length - 1));
  if (frame !== undefined) go(frame);
  if (frame >= steps.length) complaints.push(`The link asks for phase ${frame}, but the run has ${steps.length}.`);
  if (complaints.length) describe(complaints.join(" "));
}

let noting = null;
function noteAddress() {
  if (opening) return;
  clearTimeout(noting);
  noting = setTimeout(() => {
    const query = new URLSearchParams(payload.link || ""), theme = new URLSearchParams(location.search).get("__theme");
    query.set("frame", cursor);
    query.set("row", state.row);
    if (state.model !== "target") query.set("cache", state.model);
    if (state.shows !== "state") query.set("shows", state.shows);
    if (Object.entries(VIEWS).some(([name, view]) => state.views.has(name) !== Boolean(view.on)))
      query.set("views", [...state.views].join(","));
    if (theme) query.set("__theme", theme);
    history.replaceState(history.state, "", `?${query}`);
  }, 200);
}

let shown = null;
async function receive() {
  if (!props.value || props.value === shown) return;
  shown = props.value;
  const next = await unpack(props.value);
  running = null;
  show(next);
  describe();
  arrive();
  if (payload.run && payload.by_hand) runNextPhase();
  else if (payload.run) runOn();
}

new ResizeObserver(() => {
  const before = state.columns;
  measureColumns();
  if (payload && before !== state.columns) go(current());
}).observe(root);
watch("value", receive);
receive();
