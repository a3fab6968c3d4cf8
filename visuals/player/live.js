// Runs as they are computed: asked for piece by piece, stopped, and driven by hand.

let running = null, following = false;
const POLL = 80; // milliseconds between two looks at a run

const isRunning = () => running !== null;
const follow = (on) => { following = on; };
const counts = () => payload.lanes.map((lane) => lane.frames.length);
const isOver = () => payload.lanes.every((lane) => lane.ended);

function describe(note = "") {
  const { live, pair, machine, run } = payload;
  const how = isRunning() ? "running" : "paused: → runs the next phase";
  const way = run && !isOver() ? ` · ${how} · ${Math.round(100 * (payload.share || 0))} %` : "";
  const wrong = note && ` · <b class="bad">${escapeText(note)}</b>`;
  write(find(".state"), `<b>${live}</b>${way} · ${escapeText(pair)} · ${escapeText(machine)}${wrong}`);
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

let shown = null;
async function receive() {
  if (!props.value || props.value === shown) return;
  shown = props.value;
  const next = await unpack(props.value);
  running = null;
  if (next.look) opening = openingOf(next.look);
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
