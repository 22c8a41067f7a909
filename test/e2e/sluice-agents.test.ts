/** `sluice agents setup`: the settings of coding agents, printed and written. */
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AGENT_PROGRAMS, showSetup, writeSetup } from "../../scripts/sluice/agents.js";
import { runSluice } from "../../scripts/sluice/run.js";

const TARGET = { url: "https://ai.example", key: "sk_secret", model: "acme/coder" };
let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "agents-"));
});
afterEach(() => rm(home, { recursive: true, force: true }));

const folders = () => ({ home, project: home });
const contentOf = (file: string) => readFile(join(home, file), "utf8");

async function sluice(args: readonly string[], env: Record<string, string>) {
  const [out, error]: [string[], string[]] = [[], []];
  const code = await runSluice(args, env, { out: (text) => out.push(text), error: (text) => error.push(text) });
  return { code, out: out.join("\n"), error: error.join("\n") };
}

describe("agents setup", () => {
  it("prints lines without the key, for every program", async () => {
    for (const program of AGENT_PROGRAMS) {
      const { out, code } = await sluice(["agents", "setup", program, "--model", "acme/coder"], {
        SLUICE_URL: "https://ai.example/",
        SLUICE_KEY: "sk_secret",
      });

      expect([program, code]).toEqual([program, 0]);
      expect(out).toMatch(/https:\/\/ai\.example(?:\/v1)?"/);
      expect(out).toContain("SLUICE_KEY");
      expect(out).toContain("acme/coder");
      expect(out).not.toContain("sk_secret");
    }
  });

  it.each([
    [["agents", "setup", "emacs", "--model", "a/b"], "<program> is one of claude-code, codex"],
    [["agents", "setup", "codex"], "needs --model"],
    [["agents", "setup", "codex", "--model", 'a"b'], "needs --model"],
    [["agents", "setup"], "needs <program>"],
  ])("refuses %j", async (args, message) => {
    const { code, error } = await sluice(args, {});

    expect(code).toBe(2);
    expect(error).toContain(message);
  });

  it("writes nothing without a key", async () => {
    const { code, error } = await sluice(["agents", "setup", "gemini", "--model", "a/b", "--write"], { HOME: home });

    expect([code, error]).toEqual([1, expect.stringContaining("SLUICE_KEY must hold the key")]);
    await expect(stat(join(home, ".gemini"))).rejects.toThrow("ENOENT");
  });
});

describe("written settings", () => {
  it.each([
    ["claude-code", ".claude/settings.json", '"ANTHROPIC_BASE_URL": "https://ai.example"'],
    ["codex", ".codex/config.toml", 'base_url = "https://ai.example/v1"'],
    ["gemini", ".gemini/.env", 'GOOGLE_GEMINI_BASE_URL="https://ai.example"'],
    ["opencode", "opencode.json", '"baseURL": "https://ai.example/v1"'],
    ["qwen-code", ".qwen/.env", 'OPENAI_BASE_URL="https://ai.example/v1"'],
    ["aider", ".env", 'OPENAI_API_BASE="https://ai.example/v1"'],
  ])("of %s are in %s, for their owner alone", async (program, file, line) => {
    await writeSetup(program, TARGET, folders());

    expect(await contentOf(file)).toContain(line);
    expect((await stat(join(home, file))).mode & 0o777).toBe(0o600);
  });

  it("keep the key out where the program reads it from its environment", async () => {
    for (const [program, file] of [
      ["codex", ".codex/config.toml"],
      ["opencode", "opencode.json"],
    ] as const) {
      await writeSetup(program, TARGET, folders());
      expect(await contentOf(file)).not.toContain(TARGET.key);
    }
  });

  it("are added to JSON settings that are there", async () => {
    await mkdir(join(home, ".claude"));
    await writeFile(join(home, ".claude/settings.json"), '{"theme":"dark","env":{"A":"1","ANTHROPIC_MODEL":"old"},"__proto__":{"a":1}}');

    await writeSetup("claude-code", TARGET, folders());

    expect(JSON.parse(await contentOf(".claude/settings.json"))).toMatchObject({
      theme: "dark",
      env: { A: "1", ANTHROPIC_MODEL: "acme/coder", ANTHROPIC_AUTH_TOKEN: "sk_secret" },
    });
  });

  it.each([
    ["codex", ".codex", "config.toml", 'model = "mine"'],
    ["claude-code", ".claude", "settings.json", "{ // mine"],
    ["claude-code", ".claude", "settings.json", "[]"],
  ])("of %s leave a file of another form in %s/%s as it was", async (program, folder, file, text) => {
    await mkdir(join(home, folder));
    await writeFile(join(home, folder, file), text);

    await expect(writeSetup(program, TARGET, folders())).rejects.toThrow(/add these (?:lines|settings)/);
    expect(await contentOf(`${folder}/${file}`)).toBe(text);
  });
});

it("names a command that uses the settings", () => {
  expect(showSetup("opencode", TARGET).words).toContain("# then: opencode --model sluice/acme/coder");
});
