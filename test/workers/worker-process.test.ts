/** Workers that hang or end, as their primary sees them: a connection that one cannot take goes to another. */
import { spawnSync } from "node:child_process";
import { rm } from "node:fs/promises";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Connections } from "../../src/workers/connections.js";
import { type WorkerEnd, WorkerProcess } from "../../src/workers/worker-process.js";
import { compile } from "../support/compile.js";

/** More than may go without an answer. */
const MANY_PINGS = 100;
const hasPrlimit = spawnSync("prlimit", ["--version"]).status === 0;

describe("a worker, to its primary", () => {
  let compiled: { readonly program: string; readonly folder: string };
  const workers: WorkerProcess[] = [];
  let connections: Connections;
  let port: number;

  beforeAll(async () => {
    compiled = await compile(fileURLToPath(new URL("../support/programs/hindered-worker.ts", import.meta.url)));
  });
  afterAll(() => rm(compiled.folder, { recursive: true }));
  beforeEach(async () => {
    connections = new Connections(() => workers.filter(({ isServing }) => isServing));
    port = await connections.listen("127.0.0.1", 0);
  });
  afterEach(async () => {
    connections.stop();
    for (const worker of workers) worker.kill();
    await Promise.all(workers.splice(0).map(({ closed }) => closed));
  });

  interface Started {
    readonly worker: WorkerProcess;
    readonly ended: Promise<WorkerEnd>;
  }

  function start(number: number): Promise<Started> {
    return new Promise((resolve) => {
      const ended = new Promise<WorkerEnd>((onEnd) => {
        const seat = { number, workers: 2, port, isPrimaryReporter: false };
        const worker: WorkerProcess = new WorkerProcess(compiled.program, seat, {
          onReady: () => resolve({ worker, ended }),
          onChange: () => undefined,
          onSignalled: () => undefined,
          onRequest: () => undefined,
          onReturned: (socket) => connections.give(socket),
          onLog: () => undefined,
          onEnd,
        });
        workers.push(worker);
      });
    });
  }

  /** Resolves with the worker that has taken the connection. */
  const taker = (): Promise<string> => text(connect(port, "127.0.0.1"));

  it("answers pings as long as its event loop turns, however many there are", async () => {
    const { worker } = await start(1);
    for (let ping = 0; ping < MANY_PINGS; ping++) {
      expect(worker.ping()).toBe(true);
      // An answer after the one to a ping shows that the ping was answered.
      expect(await worker.ask("who", null, 20_000)).toBe(1);
    }
    expect(worker.isBusy).toBe(false);
    expect(await taker()).toBe("1");
  });

  it("is ended when its event loop hangs, and its waiting connections go to another", async () => {
    const { worker, ended } = await start(1);
    void worker.ask("hang", null, 20_000);
    const handed = taker();
    await expect.poll(() => worker.load).toBe(1);
    let pings = 0;
    while (pings < MANY_PINGS && worker.ping()) pings += 1;
    expect(pings).toBe(30);
    expect(worker.isBusy).toBe(true);
    await start(2);

    worker.kill();

    expect(await ended).toMatchObject({ signal: "SIGKILL", code: null });
    expect(await handed).toBe("2");
  });

  it.skipIf(!hasPrlimit)("is skipped when it had no descriptor free for a connection: another gets it", async () => {
    const { worker } = await start(1);
    const limit = (descriptors: string) => spawnSync("prlimit", ["--pid", String(worker.pid), `--nofile=${descriptors}`]).status;
    expect(limit("4:1024")).toBe(0);
    const handed = taker();
    await expect.poll(() => worker.load).toBe(1);
    const other = await start(2);
    expect(await taker()).toBe("2");

    expect(worker.ping()).toBe(true);

    expect(await handed).toBe("2");
    expect(limit("1024:1024")).toBe(0);
    other.worker.kill();
    await other.ended;
    expect(await taker()).toBe("1");
  });
});
