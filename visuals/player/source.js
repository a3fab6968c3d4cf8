// The strategy's own synchronize, with the lines that its last call ran.

function sourceMarkup(lane, frame, state, number) {
  if (!lane.source) return `<p class="none">This trace holds no source.</p>`;
  let last = number;
  while (last > 0 && lane.frames[last].phase !== "synchronize") last -= 1;
  const ran = new Set(lane.frames[last].lines || []);
  const lines = lane.source.replace(/\n$/, "").split("\n").map((line, place) => {
    const hit = ran.has(lane.source_line + place);
    return `<li class="${hit ? "ran" : ""}"><span aria-hidden="true">${hit ? "▸" : " "}</span>${escapeText(line) || " "}</li>`;
  });
  return `<ol class="source" tabindex="0" aria-label="Source of synchronize" start="${Number(lane.source_line)}">${lines.join("")}</ol>`;
}
