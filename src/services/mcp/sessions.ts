/** Sessions with MCP servers, kept between the calls of a run: a tool's state belongs to one run only. Bounded; idle sessions are ended. */
import { serviceUnavailable } from "../../errors.js";
import type { McpSession } from "./connection.js";
import { MCP_SESSION_IDLE_MS, MCP_SESSIONS_MAX } from "./limits.js";

export interface McpSessionEnds {
  /** Initializes a session; rejects when the server does not answer. */
  open(): Promise<McpSession>;
  /** Never rejects. */
  end(session: McpSession): Promise<void>;
}

interface Kept {
  readonly session: Promise<McpSession>;
  readonly ends: McpSessionEnds;
  uses: number;
  timer: NodeJS.Timeout | undefined;
}

export class McpSessions {
  /** By run and server; least recently used first. */
  private readonly kept = new Map<string, Kept>();

  constructor(
    private readonly sessionsMax = MCP_SESSIONS_MAX,
    private readonly idleMs = MCP_SESSION_IDLE_MS,
  ) {}

  /** Calls `work` with this run's session. Rejects as `open` and `work` do, and when there are too many sessions. */
  async use<Result>(
    runToken: string,
    server: string,
    ends: McpSessionEnds,
    work: (session: McpSession) => Promise<Result>,
  ): Promise<Result> {
    const key = `${runToken} ${server}`;
    const kept = this.kept.get(key) ?? this.open(key, ends);
    kept.uses += 1;
    clearTimeout(kept.timer);
    this.kept.delete(key);
    this.kept.set(key, kept);
    try {
      return await work(await kept.session);
    } finally {
      kept.uses -= 1;
      if (kept.uses === 0) kept.timer = setTimeout(() => this.drop(key, kept), this.idleMs).unref();
    }
  }

  /** Drops a session that the server no longer knows; the next use opens another. */
  forget(runToken: string, server: string, session: McpSession): void {
    const key = `${runToken} ${server}`;
    const kept = this.kept.get(key);
    void kept?.session.then((known) => {
      if (known === session && this.kept.get(key) === kept) this.kept.delete(key);
    });
  }

  endRun(runToken: string): void {
    for (const [key, kept] of this.kept) if (key.startsWith(`${runToken} `)) this.drop(key, kept);
  }

  async close(): Promise<void> {
    await Promise.all([...this.kept].map(([key, kept]) => this.drop(key, kept)));
  }

  private open(key: string, ends: McpSessionEnds): Kept {
    if (this.kept.size >= this.sessionsMax) this.dropIdle();
    const kept: Kept = { session: ends.open(), ends, uses: 0, timer: undefined };
    kept.session.catch(() => {
      if (this.kept.get(key) === kept) this.kept.delete(key);
    });
    return kept;
  }

  private dropIdle(): void {
    for (const [key, kept] of this.kept) if (kept.uses === 0) return void this.drop(key, kept);
    throw serviceUnavailable("Too many agents use tools at the moment.");
  }

  private async drop(key: string, kept: Kept): Promise<void> {
    clearTimeout(kept.timer);
    if (this.kept.get(key) === kept) this.kept.delete(key);
    const session = await kept.session.catch(() => null);
    if (session) await kept.ends.end(session);
  }
}
