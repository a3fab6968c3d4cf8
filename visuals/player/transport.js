// Moving the cursor: buttons, keys, the scrubber and a clock.

let playing = null;

const byRound = () => find(".pace").value === "round";

// The nearest column in a direction where the test holds; where none does, the cursor stays.
function seek(direction, test) {
  for (let place = current() + direction; place >= 0 && place < steps.length; place += direction)
    if (test(steps[place], place)) return place;
  return current();
}

const beginsRound = (step, place) => place === 0 || steps[place - 1].round !== step.round;
const flagged = (name) => () => seek(1, (step) => step.flags[name]);

function stepTo(direction, whole) {
  if (!whole) return current() + direction;
  const place = seek(direction, beginsRound);
  return place !== current() || direction < 0 ? place : steps.length - 1;
}

const MOVES = {
  first: () => 0, last: () => steps.length - 1,
  previous: () => stepTo(-1, byRound()), next: () => stepTo(1, byRound()),
  back: () => stepTo(-1, true), forward: () => stepTo(1, true),
  fault: flagged("fault"), divergence: flagged("divergence"), ragged: flagged("ragged"),
};

function move(name) {
  if (name === "play") return play(playing === null);
  play(false);
  if (name === "help") return toggleHelp();
  if (!payload) return;
  if ((name === "next" || name === "forward") && current() >= steps.length - 1) return runNextPhase();
  follow(name === "last");
  go(MOVES[name]());
}

function play(on) {
  clearInterval(playing);
  playing = null;
  if (on && steps.length) {
    if (current() >= steps.length - 1) go(0);
    playing = setInterval(() => {
      if (current() < steps.length - 1) go(MOVES.next());
      else if (!isRunning()) play(false);
    }, 1000 / Number(find(".speed").value));
  }
  const button = find("[data-go=play]"), words = playing === null ? "Play" : "Pause";
  button.textContent = playing === null ? "▶" : "❚❚";
  button.setAttribute("aria-label", `${words} (space)`);
  button.title = `${words} (space)`;
}

function goToRound(number) {
  const place = steps.findIndex((step) => step.round >= number);
  go(place < 0 ? steps.length - 1 : place);
}

function toggleHelp() {
  const help = find("dialog.help");
  if (help.open) help.close();
  else help.showModal();
}

const KEYS = {
  ArrowLeft: "previous", ArrowRight: "next", ArrowUp: "back", ArrowDown: "forward", Home: "first", End: "last",
  " ": "play", f: "fault", d: "divergence", r: "ragged", "?": "help",
};
const ACTIONS = {
  g: () => find(".round-number").focus(),
  c: () => choose("model", state.model === "target" ? "draft" : "target"),
  m: () => chooseRow((state.row + 1) % payload.lanes[0].prompts.length),
  t: () => walk(-1),
  T: () => walk(1),
  Escape: unlock,
};
const TYPING = "input, textarea, select, [contenteditable], [role=listbox], [role=textbox]";

document.addEventListener("keydown", (event) => {
  if (!root.isConnected || !payload || event.altKey || event.ctrlKey || event.metaKey) return;
  const at = event.target, name = KEYS[event.key];
  if (find("dialog.help").open && event.key !== "?") return;
  if (at !== find("input[type=range]") && at.closest?.(TYPING)) return;
  // A focused button is pressed by the space bar, as everywhere.
  if (event.key === " " && at.closest?.("button, summary, a")) return;
  if (!name && !ACTIONS[event.key]) return;
  if (event.key !== "Escape") event.preventDefault();
  if (name) move(name);
  else ACTIONS[event.key]();
});

find("input[type=range]").addEventListener("input", (event) => {
  play(false);
  go(Number(event.target.value));
});
find(".round-number").addEventListener("change", (event) => {
  if (event.target.value) goToRound(Number(event.target.value));
});
find(".speed").addEventListener("change", () => { if (playing !== null) play(true); });
