/**
 * Malicious code agents in both isolations: they reach nothing outside, exhaust nothing, and leave nothing behind. The
 * limits are the usual ones, except the shorter time limits that a test waits for.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AppError } from "../../../src/errors.js";
import type { GuestHost } from "../../../src/services/agents/sandbox/guest-calls.js";
import type { GuestLimits } from "../../../src/services/agents/sandbox/guest-process.js";
import { findDeno, type Isolation, type IsolationName } from "../../../src/services/agents/sandbox/isolation.js";
import { RunSlots } from "../../../src/services/agents/sandbox/run-slots.js";
import { SandboxRunner } from "../../../src/services/agents/sandbox/sandbox-runner.js";

const MIB = 1024 * 1024;
const ENDLESS = "return new Response(new ReadableStream({ start: (to) => to.enqueue(new Uint8Array(1)) }))";
/** Guests are the last to be given a processor, so on a busy machine they take long to reach another bound. */
const PATIENT: Partial<GuestLimits> = { wallMs: 110_000 };
const QUICK: Partial<GuestLimits> = { cpuMs: 300 };

/** Echoes its request in two pieces. */
const host: GuestHost = {
  fetch: async ({ method, path, body }) => ({
    status: 200,
    headers: [["x-method", method]],
    body: (async function* () {
      yield Buffer.from(`${path} `);
      yield body;
    })() as AsyncIterator<Uint8Array>,
  }),
  callTool: async (server, tool, args) => ({ server, tool, args }),
};

/** Each with the error that refuses it: from Deno's permissions, or from a namespace without such a thing. */
const UNREACHABLE: Readonly<Record<string, string>> = {
  "a file": `fs.readFileSync("/etc/passwd")`,
  "its own memory": `fs.openSync("/proc/self/mem")`,
  "the gateway's environment": `fs.readFileSync("/proc/" + ppid + "/environ")`,
  "its environment": `fs.readFileSync("/proc/self/environ")`,
  "a folder": `fs.readdirSync("/")`,
  "a file to write": `fs.writeFileSync("/tmp/x", "x")`,
  "a file of memory": `fs.writeFileSync("/dev/shm/x", "x")`,
  "another name": `fs.symlinkSync("/etc", "/tmp/x")`,
  "a variable": `node.env.HOME`,
  "every variable": `Object.entries(node.env)`,
  "the machine's name": `os.hostname()`,
  "the machine's addresses": `os.networkInterfaces()`,
  "a page": `fetch("http://127.0.0.1:1/")`,
  "a socket": `new Promise((resolve, reject) => net.connect(1, "127.0.0.1").on("connect", resolve).on("error", reject))`,
  "a local socket": `new Promise((resolve, reject) => net.connect("/run/x").on("connect", resolve).on("error", reject))`,
  "a port": `new Promise((resolve, reject) => net.createServer().on("error", reject).listen(0, resolve))`,
  "a datagram": `new Promise((resolve, reject) => dgram.createSocket("udp4").on("error", reject).bind(0, resolve))`,
  "a web socket": `new Promise((resolve, reject) => Object.assign(new WebSocket("ws://127.0.0.1:1"), { onopen: resolve, onerror: reject }))`,
  "a name": `dns.promises.lookup("example.org")`,
  "a program": `child.execFileSync("/bin/true")`,
  "a program, beside it": `new Promise((resolve, reject) => child.spawn("/bin/true").on("exit", resolve).on("error", reject))`,
  "another process": `node.kill(ppid, 0)`,
  "a library": `node.dlopen({ exports: {} }, "/lib/x86_64-linux-gnu/libc.so.6")`,
  "another user": `node.setuid(0)`,
  "another folder": `node.chdir("/")`,
  "a report": `node.report.getReport()`,
  "a debugger": `import("node:inspector").then(({ open }) => open(9229))`,
  "a module of the disk": `import("file://" + "/etc/passwd")`,
  "a module of the disk as text": `import("file://" + "/etc/hostname", { with: { type: "text" } })`,
  "a module of the web": `import("https://" + "deno.land/std/version.ts")`,
  "a package": `import("npm:" + "chalk")`,
  "a package of Deno's": `import("jsr:" + "@std/path")`,
  "a nested module": `import("data:text/javascript," + encodeURIComponent("export { default } from 'file:///etc/passwd'"))`,
  "a module by require": `import("node:module").then(({ createRequire }) => createRequire("file:///etc/x.js")("./passwd"))`,
  "a snapshot": `import("node:v8").then(({ writeHeapSnapshot }) => writeHeapSnapshot("/tmp/x"))`,
  "a database": `import("node:sqlite").then(({ DatabaseSync }) => new DatabaseSync("/tmp/x"))`,
  "Deno's own file": `Deno.readTextFile("/etc/passwd")`,
  "Deno's own program": `new Deno.Command("/bin/true").output()`,
  "Deno's own variable": `Deno.env.get("HOME")`,
  "Deno's own socket": `Deno.connect({ hostname: "127.0.0.1", port: 1 })`,
  "Deno's own library": `Deno.dlopen("/lib/x86_64-linux-gnu/libc.so.6", {})`,
  "Deno's own port": `Deno.listen({ port: 0 })`,
  "Deno's own name server": `Deno.resolveDns("example.org", "A")`,
  "Deno's cache": `caches.open("x")`,
  "Deno's storage": `localStorage.setItem("a", "b")`,
  "the channel to the gateway": `Deno.stdout.writeSync(new Uint8Array(1))`,
  "more than was given": `Deno.permissions.request({ name: "read" }).then(({ state }) => { if (state !== "granted") throw new Error(state) })`,
};

const PROBES = `
  const names = ["fs", "os", "net", "dgram", "dns", "child_process", "process"];
  const [fs, os, net, dgram, dns, child, { default: node }] = await Promise.all(names.map((name) => import("node:" + name)));
  let ppid = 1;
  try { ppid = node.ppid; } catch {}
  const probes = {${Object.entries(UNREACHABLE)
    .map(([name, code]) => `${JSON.stringify(name)}: async () => ${code}`)
    .join(",\n")}};
  const reached = {};
  let refuse;
  for (const type of ["error", "unhandledrejection"]) addEventListener(type, (event) => { event.preventDefault(); refuse(event); });
  for (const [name, probe] of Object.entries(probes)) {
    try { reached[name] = String(await Promise.race([probe(), new Promise((_, reject) => { refuse = reject; })])).slice(0, 100); } catch {}
  }
  return Response.json(reached);`;

/** Writes to standard output past the guest's program, in bytes as a script writes them. */
const FORGERIES: Readonly<Record<string, string>> = {
  text: `"Hello\\n".repeat(10)`,
  "a header without end": `Uint8Array.of(255, 255, 255, 255, 0, 0, 0, 0)`,
  "a body without end": `Uint8Array.of(0, 0, 0, 2, 255, 255, 255, 255, 123, 125)`,
  "no JSON": `frame("{")`,
  "no text": `Uint8Array.of(0, 0, 0, 1, 0, 0, 0, 0, 255)`,
  "no message": `frame("[]")`,
  "an unknown message": `frame('{"type":"run","request":{}}')`,
  "a body without an answer": `frame('{"type":"data"}')`,
  "an end without an answer": `frame('{"type":"end"}')`,
  "a status that there is not": `frame('{"type":"answer","status":99,"headers":[]}')`,
  "a call of the same number": `[...frame('{"type":"tool","id":7,"server":"a","tool":"b","args":{}}'), ...frame('{"type":"tool","id":7,"server":"a","tool":"b","args":{}}')]`,
  "fields of a prototype": `frame('{"type":"tool","id":7,"server":"a","tool":"b","args":{},"__proto__":{"id":8},"constructor":1}')`,
};

/** Guests in one of the isolations that `isMeant`, and what a test does with them. */
function setUp(isMeant: (isolation: Isolation) => boolean) {
  const sandboxRunner = new SandboxRunner(pino({ level: "silent" }), (isolations) => isolations.filter(isMeant), 0);
  let isStanding = false;
  beforeAll(async () => {
    isStanding = (await sandboxRunner.findIsolation()) !== null;
  });
  afterAll(() => sandboxRunner.close());

  const needIsolation = (skip: (note: string) => void) => {
    if (!isStanding) skip("this isolation is not to be had on this machine");
  };
  /** A test that is skipped, and says so, where the isolation is not to be had. */
  const behind = (name: string, test: () => Promise<void>) =>
    it(name, async ({ skip }) => {
      needIsolation(skip);
      await test();
    });

  /** `body` is that of an asynchronous function of `{ request, sluice, mcp }`. */
  const open = (body: string, limits: Partial<GuestLimits> = {}, { signal = new AbortController().signal, owner = "maker" } = {}) => {
    const script = Buffer.from(`export default async ({ request, sluice, mcp }) => {${body}};`);
    const headers = [["content-type", "application/json"]] as const;
    const request = { url: "http://sluice/v1/responses", headers, body: '{"input":"Hello"}' };
    return sandboxRunner.run(
      { script, request },
      { owner, host, signal, log: pino({ level: "silent" }), limits: { ...PATIENT, ...limits } },
    );
  };
  const run = async (body: string, limits?: Partial<GuestLimits>): Promise<string> =>
    (await (await open(body, limits)).readAll(20 * MIB)).toString();
  const refusal = (body: string, limits?: Partial<GuestLimits>): Promise<AppError> =>
    run(body, limits).then(
      (text) => expect.unreachable(`it answered ${text.slice(0, 200)}`),
      (error: AppError) => error,
    );
  return { sandboxRunner, needIsolation, behind, open, run, refusal };
}

describe.each<IsolationName>(["deno in bubblewrap", "deno alone"])("a guest in %s", (isolation) => {
  const { sandboxRunner, open, run, refusal, behind, needIsolation } = setUp((each) => each.name === isolation);

  behind("works", async () => {
    const text = await run(`
      console.log("printed"); console.table([1]);
      const answer = await sluice("/v1/models?a=b", { method: "POST", body: await request.text() });
      const { tool } = await mcp("search", "find", { query: 1 });
      return new Response([answer.status, answer.headers.get("x-method"), await answer.text(), tool].join("|"), { headers: { "set-cookie": "a=b" } });`);

    expect(text).toBe('200|POST|/v1/models?a=b {"input":"Hello"}|find');
  });

  behind("reaches nothing", async () => {
    expect(JSON.parse(await run(PROBES))).toEqual({});
  });

  it.for<[string, string]>([
    ["loops", "for (;;) {}"],
    [
      "loops and will not be told to end",
      `const { default: node } = await import("node:process"); for (const s of ["SIGXCPU", "SIGTERM"]) node.on(s, () => {}); for (;;) {}`,
    ],
    ["loops in a regular expression", `/^(a+)+$/.test("a".repeat(50) + "b")`],
    ["loops in promises", "const again = () => Promise.resolve().then(again); await again()"],
  ])("%s, and is ended", async ([, body], { skip }) => {
    needIsolation(skip);
    expect(await refusal(body, QUICK)).toMatchObject({
      code: "UPSTREAM_TIMEOUT",
      message: "The agent used more than 0.3 s of processor time.",
    });
  });

  it.for<[string, string]>([
    // Large ones: a heap that is full of small ones is collected for a minute before V8 gives up.
    ["objects", "const kept = []; for (;;) kept.push(new Array(100_000).fill(0.5))"],
    ["buffers", `const kept = []; for (;;) kept.push(new Uint8Array(${16 * MIB}).fill(1))`],
    ["shared buffers", `const kept = []; for (;;) kept.push(new Uint8Array(new SharedArrayBuffer(${16 * MIB})).fill(1))`],
    [
      "memories of WebAssembly",
      `const kept = []; for (;;) { const m = new WebAssembly.Memory({ initial: 256 }); new Uint8Array(m.buffer).fill(1); kept.push(m); }`,
    ],
    [
      "threads",
      `const { Worker } = await import("node:worker_threads"); for (;;) { new Worker("for(;;);", { eval: true }).on("error", () => {}); await new Promise((r) => setTimeout(r, 1)); }`,
    ],
  ])("fills memory with %s, and is ended", async ([, body], { skip }) => {
    needIsolation(skip);
    const error = await refusal(body);

    expect(error).toMatchObject({ code: "UPSTREAM_ERROR" });
  });

  behind("asks for 4 GB at once, and does not get them", async () => {
    expect(await run(`try { new ArrayBuffer(2 ** 32); } catch (error) { return new Response(error.name) }`)).toBe("RangeError");
  });

  behind("is gone when its caller has gone, and nothing of it is left", async () => {
    const controller = new AbortController();
    const answer = await open(
      `let pulls = 0;
      const pull = (to) => { if (pulls++ > 0) for (;;) {} to.enqueue(new Uint8Array(1)); };
      return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }))`,
      {},
      controller,
    );
    await answer.read();
    const started = descendants();
    expect(started.length).toBeGreaterThan(0);

    controller.abort(new Error("gone"));

    await expect(answer.read()).rejects.toThrow("gone");
    await expect.poll(() => started.filter(isAlive)).toEqual([]);
  });

  it("leaves no process behind", async () => {
    await sandboxRunner.close();

    await expect.poll(() => descendants().filter(isAlive)).toEqual([]);
  });
});

describe("a guest in the strongest isolation", () => {
  const { open, run, refusal, behind, needIsolation } = setUp(() => true);

  it.for<[string, string, string]>([
    [
      "answers",
      "sent more than 10 MiB",
      `const much = new Uint8Array(${MIB}); return new Response(new ReadableStream({ pull: (to) => to.enqueue(much) }))`,
    ],
    ["prints", "printed more than 1 MiB", `const much = "x".repeat(${MIB}); for (;;) console.log(much)`],
    [
      "asks with",
      "sent more than 10 MiB",
      `const much = "x".repeat(${MIB}); for (;;) sluice("/", { method: "POST", body: much }).catch(() => {}), await new Promise((r) => setTimeout(r))`,
    ],
  ])("%s gigabytes, and is ended", async ([, message, body], { skip }) => {
    needIsolation(skip);
    const before = process.memoryUsage().rss;

    expect(await refusal(body)).toMatchObject({ code: "UPSTREAM_ERROR", message: `The agent ${message}.` });

    expect(process.memoryUsage().rss - before).toBeLessThan(128 * MIB);
  });

  behind("never answers, and is ended", async () => {
    const error = await refusal("await new Promise(() => {})", { wallMs: 400 });

    expect(error).toMatchObject({ code: "UPSTREAM_TIMEOUT", message: "The agent did not finish within 0.4 s." });
  });

  it.for(Object.entries(FORGERIES))("forges %s, and is ended", async ([, bytes], { skip }) => {
    needIsolation(skip);
    const error = await refusal(`
      const fs = await import("node:fs");
      const frame = (text) => Uint8Array.of(0, 0, 0, text.length, 0, 0, 0, 0, ...new TextEncoder().encode(text));
      const bytes = ${bytes};
      fs.writeSync(1, typeof bytes === "string" ? bytes : Uint8Array.from(bytes));
      await new Promise(() => {});`);

    expect(error).toMatchObject({ code: "UPSTREAM_ERROR", message: "The agent ended the run without an answer." });
  });

  it.for<[string, string]>([
    [
      "takes the gateway's words",
      `const fs = await import("node:fs"); const eat = () => fs.read(0, Buffer.alloc(65536), () => eat()); eat(); eat(); await mcp("a", "b"); return new Response("x")`,
    ],
    ["closes its channel", `const fs = await import("node:fs"); fs.closeSync(1); fs.closeSync(0); return new Response("x")`],
    [
      "changes what its program is made of",
      `
      for (const of of [Promise, Map, Array, Uint8Array, ReadableStream, Response, Request, TextEncoder, JSON, Object]) {
        for (const target of [of, of.prototype]) for (const name of Reflect.ownKeys(target ?? {})) { try { target[name] = () => { throw new Error("changed") } } catch {} }
      }
      return new Response("x")`,
    ],
    [
      "makes getters of everything",
      `Object.defineProperty(Object.prototype, "type", { get: () => "run" }); Object.prototype.then = (r) => r("y"); return new Response("x")`,
    ],
  ])("%s, and harms itself alone", async ([, body], { skip }) => {
    needIsolation(skip);
    const told = await run(body, { ...QUICK, wallMs: 3_000 }).catch(({ code }: AppError) => code);

    expect(told).toBeOneOf(["x", "y", "INTERNAL_ERROR", "UPSTREAM_ERROR", "UPSTREAM_TIMEOUT"]);
    expect(await run(`return new Response("next")`)).toBe("next");
  });

  behind("waits for its turn beside two of the same owner's, and not beside another's", async () => {
    const first = await Promise.all([open(ENDLESS), open(ENDLESS)]);
    let hasBegun = false;
    const third = open(ENDLESS).then((answer) => {
      hasBegun = true;
      return answer;
    });
    const other = await open(ENDLESS, {}, { owner: "another" });
    expect(hasBegun).toBe(false);

    first[0]?.destroy();

    const answers = [...first, other, await third];
    for (const answer of answers) answer.destroy();
  });
});

describe("bubblewrap by itself", () => {
  const sandboxRunner = new SandboxRunner(pino({ level: "silent" }), (isolations) =>
    isolations
      .filter(({ name }) => name === "deno in bubblewrap")
      .map((isolation) => ({ ...isolation, args: isolation.args.flatMap((arg) => (arg === "run" ? ["run", "--allow-all"] : [arg])) })),
  );
  afterAll(() => sandboxRunner.close());

  it("keeps a guest that Deno allows everything from files, programs and the network", async ({ skip }) => {
    if ((await sandboxRunner.findIsolation()) === null) skip("bubblewrap is not installed, or may not be used");
    const task = {
      script: Buffer.from(`export default async () => {${PROBES}}`),
      request: { url: "http://sluice/", headers: [], body: "" },
    };
    const signal = new AbortController().signal;

    const answer = await sandboxRunner.run(task, { owner: "maker", host, signal, log: pino({ level: "silent" }) });

    const reached = JSON.parse((await answer.readAll(MIB)).toString()) as Record<string, string>;
    expect(reached).toMatchObject({ "a folder": "deno,guest.js,lib,lib64,prlimit,proc,usr", "the machine's name": "guest" });
    // The box itself remains: its libraries, its empty environment, and a network of its own without any other machine.
    const harmless = ["library", "port", "variable", "datagram", "folder", "report", "process", "every", "more than", "addresses", "name"];
    expect(Object.keys(reached).filter((name) => !harmless.some((word) => name.includes(word)))).toEqual([]);
  });
});

describe("turns", () => {
  const take = (slots: RunSlots, owner: string, signal = new AbortController().signal) => slots.take(owner, signal);
  const full = { runsMax: 3, runsPerOwnerMax: 2, waitingMax: 18, waitingPerOwnerMax: 16 };

  it("come in order, and are refused to an owner with sixteen waiting", async () => {
    const slots = new RunSlots(full);
    const running = await Promise.all([take(slots, "a"), take(slots, "a")]);
    const order: number[] = [];
    const waiting = Array.from({ length: 16 }, async (_, index) => {
      const giveBack = await take(slots, "a");
      order.push(index);
      giveBack();
    });

    await expect(take(slots, "a")).rejects.toMatchObject({ code: "RATE_LIMITED", retryAfterSeconds: 1 });
    for (const giveBack of running) giveBack();
    await Promise.all(waiting);

    expect(order).toEqual(Array.from({ length: 16 }, (_, index) => index));
  });

  it("are refused to every owner when too many wait, and no owner waits behind the bound of another", async () => {
    const slots = new RunSlots({ ...full, waitingMax: 2 });
    const [first] = await Promise.all([take(slots, "a"), take(slots, "a"), take(slots, "b")]);
    const order: string[] = [];
    const waiting = ["b", "c"].map((owner) => take(slots, owner).then(() => order.push(owner)));

    await expect(take(slots, "d")).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    first();
    await waiting[0];

    expect(order).toEqual(["b"]);
  });

  it("are not kept for a caller who has gone", async () => {
    const slots = new RunSlots({ ...full, runsMax: 1 });
    const giveBack = await take(slots, "a");
    const leaving = new AbortController();
    const left = take(slots, "a", leaving.signal);
    const next = take(slots, "a");

    leaving.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    giveBack();

    await expect(next).resolves.toBeTypeOf("function");
  });
});

it("finds the Deno that was installed for this machine", () => {
  expect(findDeno() !== null).toBe(process.platform === "linux" && ["x64", "arm64"].includes(process.arch));
});

/** Every process that this one has started, and theirs: its number and when it began. */
function descendants(): string[] {
  const children = new Map<number, string[]>();
  for (const name of readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
    const [parent, began] = statOf(name);
    if (parent === null) continue;
    children.set(parent, [...(children.get(parent) ?? []), `${name} ${began}`]);
  }
  const found: string[] = [];
  const pids = [process.pid];
  for (const pid of pids) {
    for (const child of children.get(pid) ?? []) {
      found.push(child);
      pids.push(Number.parseInt(child, 10));
    }
  }
  // What the tests themselves are run with.
  return found.filter((each) => /deno|bwrap|prlimit|setpriv|nice|guest/.test(commandOf(Number.parseInt(each, 10))));
}

function isAlive(process: string): boolean {
  const [pid = "", began] = process.split(" ");
  return statOf(pid)[1] === began;
}

function statOf(pid: string): [parent: number | null, began: string | null] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state, parent, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" ? [null, null] : [Number(parent), fields[17] ?? ""];
  } catch {
    return [null, null];
  }
}

function commandOf(pid: number): string {
  return existsSync(`/proc/${pid}/comm`) ? readFileSync(`/proc/${pid}/comm`, "utf8") : "";
}
