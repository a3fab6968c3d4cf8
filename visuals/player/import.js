// Opening trace files: read here, checked by the server, shown as lanes side by side.

const MOST_TEXT = 40e6; // characters of all files together
const TOO_MUCH = "The files hold more than 40 MB of text, which is more than can be opened.";

// As text, unzipped; a small file may hold more than memory does, so it is read piece by piece.
async function readText(file, most) {
  const [first, second] = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  let stream = file.stream();
  if (first === 0x1f && second === 0x8b) stream = stream.pipeThrough(new DecompressionStream("gzip"));
  const reader = stream.pipeThrough(new TextDecoderStream("utf-8", { fatal: true })).getReader();
  const pieces = [];
  for (let length = 0; ;) {
    const { done, value } = await reader.read();
    if (done) return pieces.join("");
    length += value.length;
    pieces.push(value);
    if (length > most) {
      reader.cancel().catch(() => {});
      throw new RangeError(TOO_MUCH);
    }
  }
}

// The payload of the files, or a sentence that says why there is none.
async function readFiles(files) {
  const texts = [];
  let left = MOST_TEXT;
  for (const file of files) {
    try {
      texts.push(await readText(file, left));
    } catch (error) {
      return { failure: error instanceof RangeError ? error.message : `${file.name} is damaged or no text file, so it holds no trace.` };
    }
    left -= texts.at(-1).length;
  }
  try {
    return await server.open_traces(texts);
  } catch {
    return { failure: "The server could not read the files." };
  }
}

async function openFiles(files) {
  const { payload: packed, failure } = await readFiles(files);
  if (!packed) return describe(failure);
  const next = await unpack(packed), before = payload, place = cursor;
  if (isRunning()) stopRun();
  unlock();
  try {
    show(next);
    paint(0);
  } catch {
    show(before);
    go(place);
    return describe("The files cannot be shown.");
  }
  describe();
}
