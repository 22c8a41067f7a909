/** The official SDK of MCP for Python against `/mcp`: it takes no event of more than 1 MiB. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { MCP_INLINE_BYTES_MAX } from "../../src/services/mcp/limits.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { imagesObject, picture } from "../support/pictures.js";
import { findMcpPython, MCP_PYTHON_ABSENT, MCP_PYTHON_PROGRAM } from "../support/python-clients.js";
import { json } from "../support/upstream-replies.js";
import { booksWith, CREDIT, createPayer, type Payer } from "./money.js";

const python = await findMcpPython();

interface Seen {
  readonly version: string;
  readonly tools: readonly string[];
  readonly calls: readonly {
    readonly is_error: boolean;
    readonly blocks: readonly (readonly [type: string, length: number])[];
    readonly structured: { readonly urls?: readonly string[]; readonly cost_usd: number };
  }[];
}

describe.skipIf(python === null)(`the SDK of MCP for Python (left out where it is absent: ${MCP_PYTHON_ABSENT})`, () => {
  let app: TestApp;
  let payer: Payer;
  beforeAll(async () => {
    app = await createTestApp();
  });
  beforeEach(async () => {
    payer = await createPayer(app, { pack: 10n * CREDIT });
  });
  afterAll(() => app.close());

  async function run(calls: readonly (readonly [tool: string, args: object])[]): Promise<Seen> {
    const env = { ...process.env, SLUICE_URL: `${app.baseUrl}/mcp`, SLUICE_KEY: payer.key, SLUICE_CALLS: JSON.stringify(calls) };
    const { stdout } = await promisify(execFile)(python ?? "", [MCP_PYTHON_PROGRAM], { env });
    return JSON.parse(stdout);
  }

  it("gets each result that it pays for: a long speech as a link, and files up to the bound in the result", async () => {
    const png = Buffer.concat([await picture(), Buffer.alloc(MCP_INLINE_BYTES_MAX)]);
    const pictures = (bytes: number) => json(imagesObject([png.subarray(0, bytes / 2), png.subarray(0, bytes - bytes / 2)]));
    app.upstream.replyNext(pictures(MCP_INLINE_BYTES_MAX), pictures(MCP_INLINE_BYTES_MAX + 2));
    const drawn = ["generate_image", { prompt: "a boat", model: "acme/image", n: 2 }] as const;

    const seen = await run([["generate_speech", { input: "word ".repeat(1500), model: "sandbox/speech-paid" }], drawn, drawn]);

    expect(seen.tools).toEqual(expect.arrayContaining(["generate_text", "generate_speech", "list_models"]));
    const [speech, inline, links] = seen.calls;
    expect(speech).toMatchObject({ is_error: false, blocks: [["text", expect.any(Number)]], structured: { cost_usd: 0.075 } });
    expect(speech?.structured.urls).toHaveLength(1);
    expect(inline?.blocks.map(([type]) => type)).toEqual(["image", "image"]);
    expect(inline?.blocks.reduce((sum, [, length]) => sum + length, 0)).toBeGreaterThan(1_000_000);
    expect(links?.blocks.map(([type]) => type)).toEqual(["text", "text"]);
    expect((await booksWith(app, payer, 3)).rows.map(({ status }) => status)).toEqual(["ok", "ok", "ok"]);
  });
});
