/** Announcements of the request log to operators. */
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { RequestContext } from "../../../src/context.js";
import { LiveRequests } from "../../../src/services/request-log/live-requests.js";
import { createMemoryEvents } from "../../../src/store/events.js";
import { silentLog } from "../../support/database.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("makes one announcement of all requests of a second, and none when it was left", async () => {
  const events = createMemoryEvents(silentLog);
  const leaving = new AbortController();
  const caller = { kind: "session", accountId: randomUUID(), sessionId: randomUUID(), isOperator: true };
  const ctx = { caller, signal: leaving.signal } as unknown as RequestContext;
  const announcements = new LiveRequests(events, { get: () => expect.fail("nothing is read") }).changed(ctx);
  const log = (requests: number) => {
    for (let index = 0; index < requests; index += 1) {
      events.publish("usage-recorded", { accountId: randomUUID(), usageId: randomUUID() });
      events.publish("requests-failed", { accountId: randomUUID(), failureIds: [randomUUID()] });
    }
  };

  log(500);
  await vi.advanceTimersByTimeAsync(1_000);
  expect((await announcements.next()).done).toBe(false);
  expect(vi.getTimerCount()).toBe(0);
  const next = announcements.next();
  log(1);
  await vi.advanceTimersByTimeAsync(1_000);
  expect((await next).done).toBe(false);

  log(1);
  const last = announcements.next();
  leaving.abort();
  expect((await last).done).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});
