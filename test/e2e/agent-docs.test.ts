/** What docs/write-an-agent.md tells people to paste, pasted, with examples/code-agent as the repository of a git server. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createClient } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type GitFileTree, type GitServer, startGitServer } from "../support/git-server.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const EXAMPLE = join(ROOT, "examples/code-agent");

let app: TestApp;
let git: GitServer;

beforeAll(async () => {
  [app, git] = await Promise.all([createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"] } }), startGitServer()]);
});
afterAll(async () => {
  await app.close();
  await git.close();
});

function exampleFiles(): GitFileTree {
  const names = readdirSync(EXAMPLE, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    names.map(({ parentPath, name }) => {
      const path = join(parentPath, name);
      return [path.slice(EXAMPLE.length + 1), readFileSync(path)];
    }),
  );
}

it("runs from its first line to its last", async () => {
  const { url } = await git.create("code-agent", exampleFiles());
  const text = readFileSync(join(ROOT, "docs/write-an-agent.md"), "utf8");
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = ""]) =>
    block.replaceAll("http://localhost:4000", app.baseUrl).replaceAll("https://github.com/you/code-agent", url),
  );
  // A refusal, which curl itself takes for an answer, ends the script.
  const script = ["set -eu", 'curl() { command curl --fail-with-body "$@"; echo; }', ...blocks].join("\n");

  const { stdout } = await promisify(execFile)("bash", ["-c", script], { env: { ...process.env, SLUICE_KEY: app.key } });

  const answers = stdout.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line) as Record<string, unknown>] : []));
  expect(answers.filter(({ errors }) => errors !== undefined)).toEqual([]);
  expect(answers).toMatchObject([
    { type: "prompt_agent", name: "guide" },
    { object: "chat.completion", model: "community/owner/guide" },
    { data: { createPromptAgent: { agent: { modelId: "community/owner/critic" } } } },
    { data: { me: { agents: { edges: [{ node: { __typename: "PromptAgent" } }, {}] } } } },
    { type: "code_agent", name: "code-agent", title: "code-agent", repository: url, visibility: "private" },
    { object: "response", model: "community/owner/code-agent", output: [{ type: "message" }] },
    { updated: false, deployedCommitSha: expect.stringMatching(/^[0-9a-f]{40}$/) },
    { requiredSafetyFeatures: ["secrets"] },
    { id: expect.anything() },
  ]);
});

it("deploys the example, which asks a tool too, and another commit of it", async () => {
  const { url, commit } = await git.create("explains", exampleFiles());
  const client = createClient(app.baseUrl, app.key);
  const created = await client.post("/account/agents", { type: "code_agent", repository: url });
  const ask = async () => {
    const body = { model: "community/owner/explains", messages: [{ role: "user", content: "models" }] };
    const answer = await client.post("/v1/chat/completions", body);
    return answer.json<{ choices: { message: { content: string } }[] }>().choices[0]?.message.content;
  };
  expect((await ask())?.split("\n")).toContain("acme/chat");

  const deployedCommitSha = await commit({
    ...exampleFiles(),
    "agent.ts": 'import { say } from "./lib/responses.ts";\nexport default () => say("any", "Another commit.");',
  });
  const synced = await client.request("POST", `/account/agents/${created.json().id}/sync`, { key: null });

  expect(synced.json()).toEqual({ updated: true, deployedCommitSha });
  expect(await ask()).toBe("Another commit.");
});
