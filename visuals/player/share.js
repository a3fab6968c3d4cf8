// The Share menu: what is on the page, as a link, a file or a picture, and traces from files.

const sharing = find(".sharing"), sharePanel = sharing.querySelector("div");
const shareButton = (name, words, kind = "") => `<button data-share="${name}">${words}<small>${kind}</small></button>`;

sharePanel.innerHTML = `
  <label>Lane <select class="share-lane"></select></label>
  ${shareButton("trace", "Trace", "JSON")}
  ${shareButton("table", "Slots of this phase", "CSV")}
  ${shareButton("timing", "Timing, for Perfetto", "JSON")}
  <label>Picture of <select class="share-view">${Object.entries(VIEWS).filter(([, view]) => view.draw)
    .map(([name, view]) => `<option value="${name}"${name === "cache" ? " selected" : ""}>${view.title}</option>`).join("")}</select></label>
  <span class="pair">${shareButton("svg", "SVG")}${shareButton("png", "PNG")}</span>
  ${props.alone ? "" : `<hr>${shareButton("page", "Page that needs no server", "HTML")}
  ${shareButton("link", "Copy link")}<hr>${shareButton("open", "Open traces…", "JSON, .gz")}
  <input type="file" multiple accept=".json,.gz,application/json,application/gzip" aria-label="Trace files" hidden>`}
  <p class="told" role="status"></p>`;

const tell = (markup) => write(sharePanel.querySelector(".told"), markup);

function sharedLanes() {
  const name = find(".share-lane").value;
  return payload.lanes.filter((lane) => !name || lane.name === name);
}

// A name that every file system takes: lanes and phase, and what kind of thing it is.
function fileName(ending, ...parts) {
  const name = sharedLanes().length === 1 ? sharedLanes()[0].name : "lanes";
  const words = ["batchspec", name, ...parts].join("-").replace(/[^\w.+-]+/g, "-").slice(0, 100);
  return `${words}.${ending}`;
}

const phaseName = () => `round-${steps[cursor].round}-${phaseWords(steps[cursor])}`;

function save(name, content, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  tell(`Saved as ${escapeText(name)}`);
}

async function copyLink() {
  if (payload.file) return tell("A link cannot hold a trace from a file: send the file, or the page.");
  if (payload.link === "") return tell("The prompts are too long for a link: send the page.");
  await new Promise((resume) => setTimeout(resume, 250)); // the address follows the cursor a little later
  try {
    await navigator.clipboard.writeText(location.href);
    tell(payload.run ? "Link copied: it makes this run again." : "Link copied.");
  } catch {
    tell(`Copy it from here: <input readonly aria-label="Link" value="${escapeText(location.href)}">`);
    sharePanel.querySelector(".told input").select();
  }
}

const SHARED = {
  trace: () => {
    const [first, ...more] = sharedLanes().map(traceOf);
    save(fileName("json", "trace"), JSON.stringify(more.length ? [first, ...more] : first), "application/json");
  },
  table: () => save(fileName("csv", phaseName(), "slots"), slotTable(sharedLanes()), "text/csv"),
  timing: () => save(fileName("json", "timing"), JSON.stringify(timingOf(sharedLanes())), "application/json"),
  svg: () => save(fileName("svg", phaseName(), find(".share-view").value), picture().text, "image/svg+xml"),
  png: async () => save(fileName("png", phaseName(), find(".share-view").value), await pixels(picture())),
  page: async () => save(fileName("html", "page"), await pageFile(), "text/html"),
  link: copyLink,
  open: () => sharePanel.querySelector("[type=file]").click(),
};

sharePanel.addEventListener("click", async (event) => {
  const name = event.target.closest("[data-share]")?.dataset.share;
  if (!name || !steps.length) return;
  tell("");
  try {
    await SHARED[name]();
  } catch {
    tell("This could not be made.");
  }
});

sharePanel.querySelector("[type=file]")?.addEventListener("change", async ({ target }) => {
  const files = [...target.files];
  target.value = ""; // the same file may be opened again
  sharing.open = false;
  if (payload && files.length) await openFiles(files);
});

// A menu stays inside the window, wherever the line of options has put it.
function placeMenu(panel) {
  panel.style.translate = "";
  const box = panel.getBoundingClientRect(), edge = 8;
  const right = Math.min(0, document.documentElement.clientWidth - edge - box.right);
  panel.style.translate = `${Math.max(right, edge - box.left)}px`;
  panel.scrollIntoView({ block: "nearest" });
}

for (const menu of root.querySelectorAll("details.menu")) {
  menu.addEventListener("toggle", () => { if (menu.open) placeMenu(menu.querySelector("div")); });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.stopPropagation(); // a locked token stays locked
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  document.addEventListener("pointerdown", (event) => { if (!menu.contains(event.target)) menu.open = false; });
}

sharing.addEventListener("toggle", () => {
  if (!sharing.open || !payload) return;
  const chosen = find(".share-lane").value;
  const names = payload.lanes.map((lane) => lane.name);
  find(".share-lane").innerHTML = `<option value="">all lanes</option>${names.map((name) =>
    `<option value="${escapeText(name)}"${name === chosen ? " selected" : ""}>${escapeText(name)}</option>`).join("")}`;
  tell("");
});
