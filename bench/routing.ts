/**
 * How the built gateway chooses among the routes of a model, at a loopback upstream (docs/spec/routing.md#measures): the share of calls of
 * each route by hundred calls, while speeds and failures change, and the share of prompt-cache hits with and without stickiness.
 *
 *   npm run -s bench:routing
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { toTable } from "./support/statistics.js";

const CALLS = 800;
/** The fast route is slow, and the cheap one fails, from here on to there. */
const CHANGED = { from: 300, to: 500 };
const HUNDRED = 100;
const PACE_MS = 20;
const OWNER_KEY = "sk_OwnerOfAllTests0123456789abcdefghijkl1q7bOw";
const KEYS = ["key-1", "key-2", "key-3", "key-4"];
const CONVERSATIONS = 50;
const TURNS = 6;

interface Message {
  readonly role: string;
  readonly content: string;
}

/** Milliseconds of an answer, or a status, by key. */
const behaviours = new Map<string, number | { readonly status: number }>();
/** The starts of conversations that each key has read. */
const prefixes = new Map<string, Set<string>>();
let hits = 0;

const upstream = createServer(async (request, response) => {
  const key = request.headers.authorization?.replace("Bearer ", "") ?? "";
  const { messages } = JSON.parse(await text(request)) as { messages: readonly Message[] };
  const behaviour = behaviours.get(key) ?? 0;
  response.setHeader("content-type", "application/json");
  if (typeof behaviour === "object") {
    response.writeHead(behaviour.status).end(JSON.stringify({ error: { message: "No." } }));
    return;
  }
  if (behaviour > 0) await delay(behaviour);
  const known = prefixes.get(key) ?? new Set();
  prefixes.set(key, known);
  // The turn before this one ended two messages ago.
  if (messages.length > 1 && known.has(JSON.stringify(messages.slice(0, -2)))) hits += 1;
  known.add(JSON.stringify(messages));
  const choices = [{ index: 0, message: { role: "assistant", content: "Yes." }, finish_reason: "stop" }];
  const usage = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 };
  response.end(JSON.stringify({ id: "chat", object: "chat.completion", created: 1, model: "m", choices, usage }));
});
upstream.listen(0, "127.0.0.1");
await once(upstream, "listening");

const directory = mkdtempSync(join(tmpdir(), "sluice-routing-"));
const modelsFile = join(directory, "models.json");
writeFileSync(modelsFile, JSON.stringify(catalog()));
const gateway = spawn(process.execPath, [join(process.cwd(), "scripts/start.mjs")], {
  cwd: directory,
  env: { PATH: process.env.PATH, PORT: "0", DATA_DIR: directory, OWNER_API_KEY: OWNER_KEY, MODELS_FILE: modelsFile, LOG_LEVEL: "error" },
  stdio: ["ignore", "pipe", "inherit"],
});
try {
  const baseUrl = await ready();
  const speeds = new Map([
    ["fast", 4],
    ["middle", 20],
    ["slow", 40],
  ]);
  const setSpeeds = (fast: number) => {
    for (const [key, ms] of speeds) behaviours.set(key, key === "fast" ? fast : ms);
  };
  await show(baseUrl, "latency", "bench/latency", ["fast", "middle", "slow"], (isChanged) => setSpeeds(isChanged ? 120 : 4));
  // Slow enough for the circuit of a failing upstream to be probed within the calls.
  for (const key of ["cheap", "usual", "dear"]) behaviours.set(key, PACE_MS);
  await show(baseUrl, "price", "bench/price", ["cheap", "usual", "dear"], (isChanged) =>
    behaviours.set("cheap", isChanged ? { status: 503 } : PACE_MS),
  );
  const rows = [];
  for (const [name, wishes] of [
    ["with stickiness", {}],
    // A wish for an order outranks the route of the conversation; all prices are equal.
    ["without", { provider: { sort: "price" } }],
  ] as const) {
    prefixes.clear();
    hits = 0;
    for (let turn = 0; turn < TURNS; turn += 1) {
      for (let index = 0; index < CONVERSATIONS; index += 1)
        await chat(baseUrl, "bench/keys", conversation(`${name} ${index}`, turn), wishes);
    }
    const possible = CONVERSATIONS * (TURNS - 1);
    rows.push([name, `${possible}`, `${hits}`, percent(hits, possible)]);
  }
  console.log(`\nPrompt-cache hits of ${CONVERSATIONS} conversations of ${TURNS} turns, ${KEYS.length} keys\n`);
  console.log(toTable(["", "later turns", "hits", "share"], rows));
} finally {
  gateway.kill("SIGTERM");
  await once(gateway, "close");
  upstream.closeAllConnections();
  upstream.close();
  rmSync(directory, { recursive: true, force: true });
}

/** Prints the share of each route by hundred calls. */
async function show(
  baseUrl: string,
  routing: string,
  model: string,
  names: readonly string[],
  change: (isChanged: boolean) => unknown,
): Promise<void> {
  const rows: string[][] = [];
  let served = new Map<string, number>();
  for (let call = 0; call < CALLS; call += 1) {
    change(call >= CHANGED.from && call < CHANGED.to);
    const name = await chat(baseUrl, model, [{ role: "user", content: `Call ${call} of ${model}` }]);
    served.set(name, (served.get(name) ?? 0) + 1);
    if ((call + 1) % HUNDRED > 0) continue;
    rows.push([`${call + 2 - HUNDRED} to ${call + 1}`, ...names.map((each) => percent(served.get(each) ?? 0, HUNDRED))]);
    served = new Map();
  }
  console.log(`\nBy ${routing}; changed from call ${CHANGED.from + 1} to ${CHANGED.to}\n`);
  console.log(toTable(["calls", ...names], rows));
}

/** The upstream that served. */
async function chat(baseUrl: string, model: string, messages: readonly Message[], wishes: object = {}): Promise<string> {
  const response = await fetch(`${baseUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${OWNER_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages, ...wishes }),
  });
  const body = await response.text();
  if (response.status !== 200) throw new Error(`${response.status} ${body}`);
  return response.headers.get("x-upstream") ?? "";
}

function conversation(name: string, turn: number): Message[] {
  const messages: Message[] = [{ role: "user", content: `Conversation ${name}` }];
  for (let each = 1; each <= turn; each += 1)
    messages.push({ role: "assistant", content: "Yes." }, { role: "user", content: `Turn ${each}` });
  return messages;
}

function catalog(): object {
  const baseUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
  const routes = [
    { upstream: "cheap", upstreamModel: "m", prices: { promptTextPrice: "0.000001" } },
    { upstream: "usual", upstreamModel: "m", prices: { promptTextPrice: "0.000002" } },
    { upstream: "dear", upstreamModel: "m", prices: { promptTextPrice: "0.000003" } },
  ];
  const byTime = ["fast", "middle", "slow"].map((name) => ({ upstream: name, upstreamModel: "m" }));
  const model = (id: string, more: object) => ({ id, title: id, modality: "text", prices: { promptTextPrice: "0.000004" }, ...more });
  return {
    upstreams: [
      ...[...byTime, ...routes].map(({ upstream: id }) => ({ id, wireFormat: "openai", baseUrl, apiKey: id })),
      { id: "keys", wireFormat: "openai", baseUrl, apiKeys: KEYS },
    ],
    models: [
      model("bench/latency", { routing: "latency", routes: byTime }),
      model("bench/price", { routing: "price", routes }),
      model("bench/keys", { routes: [{ upstream: "keys", upstreamModel: "m", prices: { promptTextPrice: "0.000001" } }] }),
    ],
  };
}

async function ready(): Promise<string> {
  for await (const line of createInterface(gateway.stdout)) {
    const [, url] = /ready at\s+(\S+)/.exec(line) ?? [];
    if (url !== undefined) return url;
  }
  throw new Error("The gateway ended before it was ready.");
}

function percent(part: number, whole: number): string {
  return `${Math.round((100 * part) / whole)} %`;
}
