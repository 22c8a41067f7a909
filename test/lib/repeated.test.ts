import { afterEach, describe, expect, it, vi } from "vitest";
import { Repeated } from "../../src/lib/repeated.js";
import { inTime } from "../support/eventually.js";

function createLog() {
  const lines: unknown[][] = [];
  return { lines, warn: (...line: unknown[]) => void lines.push(line) };
}

/** Work that ends when the test says so. */
class Steered {
  started = 0;
  private readonly ends: (() => void)[] = [];

  readonly run = () => {
    this.started += 1;
    return new Promise<void>((resolve) => this.ends.push(resolve));
  };

  end(): void {
    this.ends.shift()?.();
  }
}

/** Work whose runs are counted; the first one fails. */
class Runs {
  private count = 0;
  private readonly waiting = new Map<number, () => void>();

  readonly run = () => {
    this.count += 1;
    this.waiting.get(this.count)?.();
    if (this.count === 1) throw new Error("broken");
  };

  until(count: number): Promise<void> {
    return new Promise((resolve) => this.waiting.set(count, resolve));
  }
}

/** Timers that keep the process alive. */
function timersThatHold(): number {
  return process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
}

afterEach(() => {
  vi.useRealTimers();
});

describe("repeated work", () => {
  it("never overlaps: a second call joins the run under way, and a later one starts the next", async () => {
    const work = new Steered();
    const repeated = new Repeated(work.run, createLog(), "failed");

    const first = repeated.now();
    const joined = repeated.now();
    expect(work.started).toBe(1);
    work.end();
    await Promise.all([first, joined]);

    const next = repeated.now();
    expect(work.started).toBe(2);
    work.end();
    await next;
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("broken");
      },
    ],
    ["rejects", () => Promise.reject(new Error("broken"))],
  ])("logs a run that %s, and goes on", async (_what, fail) => {
    const log = createLog();
    let runs = 0;
    const repeated = new Repeated(() => (runs++ === 0 ? fail() : undefined), log, "The work has failed.");

    expect(await repeated.now()).toBeUndefined();
    expect(log.lines).toEqual([[{ err: expect.objectContaining({ message: "broken" }) }, "The work has failed."]]);

    await repeated.now();
    expect([runs, log.lines.length]).toEqual([2, 1]);
  });

  it("runs at each interval, after a failure too", async () => {
    const log = createLog();
    const runs = new Runs();
    const repeated = new Repeated(runs.run, log, "failed");

    expect(repeated.every(1)).toBe(repeated);
    await inTime(runs.until(3), "a third run");
    await repeated.close();

    expect(log.lines).toHaveLength(1);
  });

  it("does not keep the process alive, nor start a run before the interval", async () => {
    const before = timersThatHold();
    const work = new Steered();
    const repeated = new Repeated(work.run, createLog(), "failed").every(3_600_000);

    expect(timersThatHold()).toBe(before);
    expect(work.started).toBe(0);
    await repeated.close();
  });

  it("has one interval: a second one takes the place of the first", () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const work = new Steered();
    new Repeated(work.run, createLog(), "failed").every(1_000).every(10_000);

    vi.advanceTimersByTime(9_999);
    expect(work.started).toBe(0);
    vi.advanceTimersByTime(1);
    expect(work.started).toBe(1);
  });

  it("is closed when the run under way has ended", async () => {
    const work = new Steered();
    const repeated = new Repeated(work.run, createLog(), "failed").every(3_600_000);
    const order: string[] = [];

    const run = repeated.now().then(() => order.push("run"));
    const closed = repeated.close().then(() => order.push("closed"));
    work.end();
    await Promise.all([run, closed]);

    expect(order).toEqual(["run", "closed"]);
  });
});
