import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TextQueue } from "../../src/lib/text-queue.js";

const CHARS_MAX = 10;

/** A queue, and whether its source is paused. Pausing and resuming must alternate. */
function createQueue() {
  const source = { isPaused: false };
  const queue = new TextQueue(CHARS_MAX, {
    pause: () => {
      expect(source.isPaused).toBe(false);
      source.isPaused = true;
    },
    resume: () => {
      expect(source.isPaused).toBe(true);
      source.isPaused = false;
    },
  });
  return { queue, source };
}

async function readAll(queue: TextQueue): Promise<string[]> {
  const texts: string[] = [];
  for await (const text of queue) texts.push(text);
  return texts;
}

describe("a queue of texts", () => {
  it("is read in order, and to its end", async () => {
    const { queue } = createQueue();
    for (const text of ["a", "", "b"]) queue.push(text);
    queue.end();

    expect(await readAll(queue)).toEqual(["a", "", "b"]);
    expect(await queue.next()).toEqual({ done: true, value: undefined });
  });

  it("gives a text to the reader who waits for it", async () => {
    const { queue } = createQueue();

    const first = queue.next();
    queue.push("a");
    expect(await first).toEqual({ done: false, value: "a" });

    const last = queue.next();
    queue.end();
    expect(await last).toEqual({ done: true, value: undefined });
  });

  it("takes nothing after its end", async () => {
    const { queue, source } = createQueue();
    queue.end();
    queue.push("x".repeat(CHARS_MAX + 1));

    expect(source.isPaused).toBe(false);
    expect(await readAll(queue)).toEqual([]);
  });

  it("pauses its source above the bound, not at it, and resumes it at the bound", async () => {
    const { queue, source } = createQueue();
    queue.push("x".repeat(CHARS_MAX));
    expect(source.isPaused).toBe(false);
    queue.push("y");
    expect(source.isPaused).toBe(true);

    queue.push("z".repeat(CHARS_MAX));
    await queue.next();
    expect(source.isPaused).toBe(true);
    await queue.next();
    expect(source.isPaused).toBe(false);
  });

  it("pauses its source while more is unread than the bound, after any pushes and reads", async () => {
    const step = fc.oneof(fc.constant(null), fc.nat(2 * CHARS_MAX));
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const { queue, source } = createQueue();
        const unread: number[] = [];
        for (const chars of steps) {
          if (chars !== null) {
            queue.push("x".repeat(chars));
            unread.push(chars);
          } else if (unread.length > 0) {
            const { value } = await queue.next();
            expect(value).toHaveLength(unread.shift() as number);
          }
          expect(source.isPaused).toBe(unread.reduce((sum, each) => sum + each, 0) > CHARS_MAX);
        }
      }),
    );
  });
});

describe("a queue that fails", () => {
  it("throws the failure once, after the texts before it", async () => {
    const failure = new Error("broken");
    const { queue } = createQueue();
    queue.push("a");
    queue.end(failure);

    expect(await queue.next()).toEqual({ done: false, value: "a" });
    await expect(queue.next()).rejects.toBe(failure);
    expect(await queue.next()).toEqual({ done: true, value: undefined });
  });

  it("fails a reader who waits", async () => {
    const failure = new Error("broken");
    const { queue } = createQueue();

    const next = queue.next();
    queue.end(failure);

    await expect(next).rejects.toBe(failure);
  });

  it("keeps its first end", async () => {
    const failed = createQueue().queue;
    failed.end(new Error("first"));
    failed.end(new Error("second"));
    const ended = createQueue().queue;
    ended.end();
    ended.end(new Error("late"));

    await expect(failed.next()).rejects.toThrow("first");
    expect(await ended.next()).toEqual({ done: true, value: undefined });
  });

  it("throws failures that are no errors, but undefined is none", async () => {
    const failed = createQueue().queue;
    failed.end(null);
    const ended = createQueue().queue;
    ended.end(undefined);

    await expect(failed.next()).rejects.toBeNull();
    expect(await ended.next()).toEqual({ done: true, value: undefined });
  });
});

describe("a reader who leaves", () => {
  it("drops the unread texts and a failure, and ends the queue", async () => {
    const { queue } = createQueue();
    queue.push("a");
    queue.end(new Error("broken"));

    expect(await queue.return()).toEqual({ done: true, value: undefined });
    queue.push("b");
    expect(await queue.next()).toEqual({ done: true, value: undefined });
  });

  it("lets a paused source go on", async () => {
    const { queue, source } = createQueue();
    for (const text of ["a", "x".repeat(CHARS_MAX), "b"]) queue.push(text);
    expect(source.isPaused).toBe(true);

    for await (const text of queue) {
      expect(text).toBe("a");
      break;
    }

    expect(source.isPaused).toBe(false);
  });

  it("ends a read under way", async () => {
    const { queue } = createQueue();

    const next = queue.next();
    await queue.return();

    expect(await next).toEqual({ done: true, value: undefined });
  });
});
