/** How many sessions with MCP servers there are at once, and when they end. */
import { afterEach, expect, it } from "vitest";
import type { McpSession } from "../../../src/services/mcp/connection.js";
import { McpSessions } from "../../../src/services/mcp/sessions.js";

const ended: string[] = [];
let opened = 0;
const ends = {
  open: async (): Promise<McpSession> => ({ id: `session-${++opened}`, protocolVersion: undefined }),
  end: async ({ id }: McpSession) => void ended.push(id),
};

afterEach(() => {
  ended.length = 0;
  opened = 0;
});

it("ends the least recently used session when there are too many", async () => {
  const sessions = new McpSessions(2, 60_000);
  const use = (run: string) => sessions.use(run, "search", ends, async ({ id }) => id);

  await use("ag_a");
  await use("ag_b");
  const again = await use("ag_a");
  const third = await use("ag_c");
  await sessions.close();

  expect([again, third]).toEqual(["session-1", "session-3"]);
  expect(ended).toEqual(["session-2", "session-1", "session-3"]);
});

it("refuses another one while all are in use", async () => {
  const sessions = new McpSessions(1, 60_000);
  let finish: () => void = () => undefined;
  const busy = sessions.use("ag_a", "search", ends, () => new Promise<void>((resolve) => (finish = resolve)));
  await Promise.resolve();

  await expect(sessions.use("ag_b", "search", ends, async () => undefined)).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
  await expect.poll(() => finish()).toBeUndefined();
  await busy;
  await sessions.close();
});

it("ends an idle session", async () => {
  const sessions = new McpSessions(1, 1);

  await sessions.use("ag_a", "search", ends, async () => undefined);

  await expect.poll(() => ended).toEqual(["session-1"]);
});

it("opens another session after one that could not be opened", async () => {
  const sessions = new McpSessions(1, 60_000);
  const broken = { ...ends, open: () => Promise.reject(new Error("nobody there")) };

  await expect(sessions.use("ag_a", "search", broken, async () => undefined)).rejects.toThrow("nobody there");
  await expect(sessions.use("ag_a", "search", ends, async ({ id }) => id)).resolves.toBe("session-1");
  await sessions.close();
});
