/** V8's sampling profiler over the inspector's WebSocket, and whose code the samples fell into. */
import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { fileURLToPath } from "node:url";
import { request } from "undici";
import { WebSocket } from "ws";

const SAMPLE_MICROSECONDS = 250;
const ROWS_MAX = 40;

interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number; readonly columnNumber: number };
  readonly children?: readonly number[];
}

export interface Profile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

export interface Profiler {
  start(): Promise<void>;
  stop(): Promise<Profile>;
}

export async function connectProfiler(port: number): Promise<Profiler> {
  const { body } = await request(`http://127.0.0.1:${port}/json`);
  const [{ webSocketDebuggerUrl: url }] = (await body.json()) as [{ webSocketDebuggerUrl: string }];
  const socket = new WebSocket(url, { maxPayload: 0 });
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  let last = 0;
  const send = (method: string, params = {}) =>
    new Promise<{ profile: Profile }>((resolve) => {
      const id = ++last;
      const listener = (data: Buffer) => {
        const message = JSON.parse(data.toString()) as { id?: number; result: { profile: Profile } };
        if (message.id !== id) return;
        socket.off("message", listener);
        resolve(message.result);
      };
      socket.on("message", listener);
      socket.send(JSON.stringify({ id, method, params }));
    });
  await send("Profiler.enable");
  await send("Profiler.setSamplingInterval", { interval: SAMPLE_MICROSECONDS });
  return {
    start: async () => void (await send("Profiler.start")),
    stop: async () => {
      const { profile } = await send("Profiler.stop");
      socket.terminate();
      return profile;
    },
  };
}

/** Shares of the busy time, of 0 to 1. */
export interface Attribution {
  /** By the project's file that ran, or that called what ran; by package where none of them did. */
  readonly files: ReadonlyMap<string, number>;
  /** By the project's function, likewise. */
  readonly functions: ReadonlyMap<string, number>;
  /** By the function itself, whosoever it is. */
  readonly own: ReadonlyMap<string, number>;
}

export function attribute(profile: Profile): Attribution {
  const byId = new Map(profile.nodes.map((node) => [node.id, node]));
  const parents = new Map<number, number>();
  for (const { id, children = [] } of profile.nodes) for (const child of children) parents.set(child, id);
  const times = new Map<number, number>();
  for (const [index, id] of profile.samples.entries()) times.set(id, (times.get(id) ?? 0) + (profile.timeDeltas[index] ?? 0));

  const placeOf = createPlaces();
  const [files, functions, own] = [new Map<string, number>(), new Map<string, number>(), new Map<string, number>()];
  let busy = 0;
  for (const [id, time] of times) {
    const node = byId.get(id);
    if (!node || node.callFrame.functionName === "(idle)") continue;
    busy += time;
    const place = placeOf(node);
    add(own, `${place.name}  ${place.file}`, time);
    let at: number | undefined = id;
    let ancestor: Place | null = place;
    while (ancestor !== null && !ancestor.isOwn) {
      at = at === undefined ? undefined : parents.get(at);
      const above: ProfileNode | undefined = at === undefined ? undefined : byId.get(at);
      ancestor = above ? placeOf(above) : null;
    }
    add(files, ancestor?.owner ?? place.owner, time);
    add(functions, ancestor ? `${ancestor.name}  ${ancestor.file}` : place.owner, time);
  }
  for (const map of [files, functions, own]) for (const [key, time] of map) map.set(key, time / busy);
  return { files, functions, own };
}

/** A table for each of them; `microseconds` is what the whole is. */
export function printTables({ files, functions, own }: Attribution, microseconds: number): void {
  const tables = { "by file, with what it calls": files, "by function, with what it calls": functions, "by itself": own };
  for (const [title, shares] of Object.entries(tables)) {
    console.log(`\n${title}\n`);
    const rows = [...shares].sort(([, a], [, b]) => b - a).slice(0, ROWS_MAX);
    for (const [name, share] of rows) {
      console.log(`${(share * 100).toFixed(1).padStart(5)}% ${(share * microseconds).toFixed(1).padStart(7)} us  ${name}`);
    }
  }
}

interface Place {
  /** A package, a part of Node, or a file of the project. */
  readonly owner: string;
  readonly isOwn: boolean;
  readonly name: string;
  readonly file: string;
}

/** Of which package or folder a function is, by the bundle's source maps. */
function createPlaces(): (node: ProfileNode) => Place {
  const maps = new Map<string, SourceMap | null>();
  const places = new Map<ProfileNode, Place>();
  const find = ({ callFrame: { functionName, url, lineNumber, columnNumber } }: ProfileNode): Place => {
    const name = functionName || "(anonymous)";
    const isOwn = false;
    if (url === "") return { owner: name.startsWith("(") ? name : "V8 and native code", isOwn, name, file: "" };
    if (url.startsWith("node:")) return { owner: url.replace(/^node:(?:internal\/)?([a-z_0-9]+).*$/u, "node:$1"), isOwn, name, file: url };
    if (!maps.has(url)) maps.set(url, readMap(url));
    const entry = maps.get(url)?.findEntry(lineNumber, columnNumber);
    const source = entry && "originalSource" in entry ? entry.originalSource : url;
    const line = entry && "originalLine" in entry ? entry.originalLine + 1 : lineNumber + 1;
    const [, ofPackage, inPackage] = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(.*)$/u.exec(source) ?? [];
    if (ofPackage !== undefined) return { owner: ofPackage, isOwn, name, file: `${ofPackage}/${inPackage}:${line}` };
    const own = /(src\/.*)$/u.exec(source)?.[1] ?? source;
    return { owner: own, isOwn: true, name, file: `${own}:${line}` };
  };
  return (node) => {
    const known = places.get(node) ?? find(node);
    places.set(node, known);
    return known;
  };
}

function readMap(url: string): SourceMap | null {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${fileURLToPath(url)}.map`, "utf8")));
  } catch {
    return null;
  }
}

function add(totals: Map<string, number>, key: string, time: number): void {
  totals.set(key, (totals.get(key) ?? 0) + time);
}
