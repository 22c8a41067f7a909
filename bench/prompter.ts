/**
 * One caller who sends long prompts, each after the answer to the last one: a process of its own, so that sending them does
 * not delay the measured requests.
 *
 * `--url`, `--headers` (JSON), `--model`, `--chars`. Prints `{"completed":n,"failures":n}` when SIGTERM ends it.
 */
import { parseArgs } from "node:util";
import { Pool } from "undici";
import { longChatRequest } from "./support/documents.js";

const options = { url: { type: "string" }, headers: { type: "string" }, model: { type: "string" }, chars: { type: "string" } } as const;
const { url = "", headers = "{}", model = "", chars = "0" } = parseArgs({ options }).values;
const { origin, pathname } = new URL(url);
const pool = new Pool(origin, { connections: 1, headersTimeout: 60_000 });
const allHeaders = JSON.parse(headers) as Record<string, string>;
let [completed, failures, isStopped] = [0, 0, false];
process.on("SIGTERM", () => {
  isStopped = true;
});
for (let number = 0; !isStopped; number += 1) {
  const body = longChatRequest(model, Number(chars), number);
  const answer = await pool.request({ path: pathname, method: "POST", headers: allHeaders, body }).catch(() => null);
  await answer?.body.dump();
  if (answer?.statusCode === 200) completed += 1;
  else failures += 1;
}
await pool.close();
console.log(JSON.stringify({ completed, failures }));
