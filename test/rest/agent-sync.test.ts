/** Syncing code agents through the whole gateway, on both faces: permissions, frequency, and the deployed code. */

import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { AgentSync, type AgentSyncDependencies } from "../../src/services/agents/agent-sync.js";
import type { CodeRepositories, RefreshedCode } from "../../src/services/agents/repositories.js";
import { Repositories } from "../../src/services/agents/repositories.js";
import { createPayer, databaseOf, type Payer } from "../e2e/money.js";
import { execute, ok } from "../graphql/client.js";
import { SyncAgentDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock } from "../support/clock.js";
import { type GitServer, startGitServer, type TestRepository } from "../support/git-server.js";
import { type Client, createClient, expectEnvelope } from "./client.js";

const clock = createMovableClock();
let app: TestApp;
let git: GitServer;
let repository: TestRepository;
let payer: Payer;
let client: Client;
/** The agent of each test, deployed at a commit that is not the latest. */
let id: string;
let latest: string;

/** Without an account. */
const ctx = { caller: { kind: "anonymous" }, signal: new AbortController().signal } as never;
const CODE: RefreshedCode = { commitSha: "1".repeat(40), bundle: "the bundle of another process", description: null };
const OLD = { deployedCommitSha: "0".repeat(40), bundle: "the old bundle" };

beforeAll(async () => {
  const rateLimits = {
    anonymousRequestsPer10Seconds: 1_000_000,
    publishableRequestsPerMinute: 1_000_000,
    publishableCreditsPerHour: 10n ** 9n,
  };
  [app, git] = await Promise.all([createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"], rateLimits }, clock }), startGitServer()]);
  repository = await git.create("echo");
  latest = await repository.commit({ "agent.ts": "export default 'first';" });
  payer = await createPayer(app, { pack: 0n });
  client = createClient(app.baseUrl, null);
});
beforeEach(async () => {
  git.intercept = () => false;
  id = await createAgent({ repository: repository.url, ...OLD });
});
afterAll(async () => {
  await app.close();
  await git.close();
});

async function createAgent(agent: object): Promise<string> {
  const { prisma } = databaseOf(app);
  const row = {
    id: uuidv7(),
    accountId: payer.accountId,
    name: uuidv7(),
    title: "echo",
    inputModalities: ["text"],
    outputModalities: ["text"],
  };
  const type = "repository" in agent ? "code_agent" : "prompt_agent";
  await prisma.communityModel.create({ data: { ...row, type, description: "from its host" } });
  await prisma.agent.create({ data: { id: row.id, ...agent } });
  return row.id;
}

async function sync(agent = id, prefix = "/account", headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${app.baseUrl}${prefix}/agents/${agent}/sync`, { method: "POST", headers });
}

function syncByGraphQL(agent = id) {
  return execute({ ...app, key: null }, SyncAgentDocument, { id: agent });
}

function deployed() {
  return databaseOf(app).prisma.agent.findUnique({ where: { id }, include: { model: true } });
}

function dependencies(): AgentSyncDependencies {
  const { database, events, outbound } = app.infrastructure;
  return { database, events, clock, repositories: new Repositories(outbound) };
}

/** As another process has it, with a repository that gives this. */
function syncOf(fetch: () => Promise<RefreshedCode>): AgentSync {
  const refresh: CodeRepositories["refresh"] = async (_repository, begin) => ({ begun: await begin(), code: await fetch() });
  return new AgentSync({ ...dependencies(), repositories: { refresh } });
}

describe("a sync", () => {
  it("deploys the latest commit for any caller, and updates the cached model", async () => {
    const told: unknown[] = [];
    const leave = dependencies().events.listen("community-model-changed", ({ modelId, change }) => told.push([modelId, change]));

    const response = await sync();

    leave();
    expect([response.status, await response.json()]).toEqual([200, { updated: true, deployedCommitSha: latest }]);
    expect(await deployed()).toMatchObject({
      deployedCommitSha: latest,
      bundle: expect.stringContaining('"first"'),
      syncedAt: clock.now(),
      model: { name: expect.anything(), title: "echo" },
    });
    expect(told).toEqual([[id, "updated"]]);
  });

  it("of a commit that is deployed refreshes the bundle", async () => {
    await databaseOf(app).prisma.agent.update({ where: { id }, data: { deployedCommitSha: latest } });

    expect(ok(await syncByGraphQL()).syncAgent).toEqual({ agent: null, isUpdated: false, deployedCommitSha: latest });
    expect((await deployed())?.bundle).toContain('"first"');
  });

  it("follows the repository from commit to commit", async () => {
    await sync();
    const next = await repository.commit({ "agent.ts": "import data from './data.json'; export default data;", "data.json": "[42]" });
    clock.advance(30);

    expect(await (await sync(id, "/api/account")).json()).toEqual({ updated: true, deployedCommitSha: next });
    expect((await deployed())?.bundle).toContain("42");
    latest = next;
  });

  it("is refused within 30 seconds after another, on both faces, and is not after them", async () => {
    expect((await sync()).status).toBe(200);
    clock.advance(0.001);

    const refused = await client.request("POST", `/account/agents/${id}/sync`);

    expectEnvelope(refused, 429, "RATE_LIMITED");
    expect(refused.headers.get("retry-after")).toBe("30");
    clock.advance(29.998);
    expect((await sync()).headers.get("retry-after")).toBe("1");
    expect((await syncByGraphQL()).errors?.[0]?.extensions.code).toBe("RATE_LIMITED");
    clock.advance(0.001);
    expect((await sync()).status).toBe(200);
  });

  it("is one of many at once, in this process and in others", async () => {
    const other = new AgentSync(dependencies());
    const asked = git.requests.length;

    const statuses = await Promise.all([
      ...Array.from({ length: 10 }, async () => (await sync()).status),
      ...Array.from({ length: 10 }, () =>
        other.sync(ctx, id).then(
          () => 200,
          ({ code }) => code,
        ),
      ),
    ]);

    const made = statuses.filter((status) => status === 200);
    expect(made).toHaveLength(1);
    expect(statuses.filter((status) => [429, "RATE_LIMITED", 503, "SERVICE_UNAVAILABLE"].includes(status))).toHaveLength(19);
    expect(git.requests.length - asked).toBe(2);
  });

  it("needs a code agent", async () => {
    const promptAgent = await createAgent({ systemPrompt: "You are.", baseModel: "acme/chat" });

    for (const unknown of [uuidv7(), promptAgent, "echo", "0".repeat(36), "%F0%9F%98%80"]) {
      const response = await sync(unknown, "/api/account");
      expect([unknown, response.status]).toEqual([unknown, 404]);
      expect((await syncByGraphQL(decodeURIComponent(unknown))).errors?.[0]).toMatchObject({
        message: "No such code agent.",
        extensions: { code: "NOT_FOUND" },
      });
    }
  });

  it("needs no key, but a key that is sent must be good", async () => {
    expect((await sync(id, "/account", { authorization: "Bearer sk_wrong" })).status).toBe(401);
    expect((await sync(id, "/account", { authorization: `Bearer ${payer.key}` })).status).toBe(200);
  });

  it("ignores any other text that a code host sends", async () => {
    const body = { ref: "refs/heads/main", commits: [{ message: "x".repeat(20_000) }] };

    expect((await client.post(`/account/agents/${id}/sync`, body, { headers: { "x-github-event": "push" } })).status).toBe(200);
    expect((await client.post(`/account/agents/${id}/sync`, "payload=", { headers: { "content-type": "text/plain" } })).status).toBe(429);
  });

  it("is not for agents at work", async () => {
    const caller = { kind: "session", accountId: payer.accountId, run: { parentRequestId: uuidv7() } };

    await expect(app.services.agentSync.sync({ caller } as never, id)).rejects.toMatchObject({ code: "FORBIDDEN" });
  });
});

describe("a sync that fails", () => {
  it.each([
    ["the host is out of order", 500, 502, "UPSTREAM_ERROR"],
    ["the repository has gone", 404, 400, "BAD_REQUEST"],
  ])("because %s keeps the deployed code, and is not tried again at once", async (_, status, expected, code) => {
    git.intercept = (_request, response) => {
      response.writeHead(status).end("a secret of the host");
      return true;
    };

    const response = await sync();

    const text = await response.text();
    expect([response.status, JSON.parse(text).error.code]).toEqual([expected, code]);
    expect(text).not.toContain("secret");
    expect(text).not.toContain("127.0.0.1");
    expect(await deployed()).toMatchObject(OLD);
    expect((await sync()).status).toBe(429);
  });

  it("because the commit holds no agent keeps the deployed code", async () => {
    const broken = await git.create("broken", { "readme.md": "nothing" });
    id = await createAgent({ repository: broken.url, ...OLD });

    expectEnvelope(await client.request("POST", `/account/agents/${id}/sync`), 400, "BAD_REQUEST");
    expect(await deployed()).toMatchObject(OLD);
  });

  it("because the agent was deleted meanwhile brings nothing back", async () => {
    git.intercept = ({ method }, response) => {
      if (method !== "POST") return false;
      void databaseOf(app)
        .prisma.communityModel.delete({ where: { id } })
        .then(() => response.writeHead(307).end());
      return true;
    };
    expect((await sync()).status).toBe(502);
    expect(await deployed()).toBeNull();

    git.intercept = () => false;
    id = await createAgent({ repository: repository.url, ...OLD });
    const slow = syncOf(async () => {
      await databaseOf(app).prisma.communityModel.delete({ where: { id } });
      return CODE;
    });
    await expect(slow.sync(ctx, id)).rejects.toMatchObject({ code: "NOT_FOUND" });
    expect(await deployed()).toBeNull();
  });

  it("behind a quicker, later one keeps the later commit", async () => {
    const late = syncOf(async () => {
      clock.advance(31);
      expect((await sync()).status).toBe(200);
      return CODE;
    });

    expect(await late.sync(ctx, id)).toEqual({ updated: false, deployedCommitSha: latest });
    expect((await deployed())?.bundle).not.toBe(CODE.bundle);
  });
});

describe("the description of a synced agent", () => {
  it.each([
    ["another", "another"],
    [null, null],
    [undefined, "from its host"],
  ])("that its host states as %s becomes %s", async (told, expected) => {
    await syncOf(async () => ({ ...CODE, description: told })).sync(ctx, id);

    expect(await deployed()).toMatchObject({ bundle: CODE.bundle, model: { description: expected } });
  });
});
