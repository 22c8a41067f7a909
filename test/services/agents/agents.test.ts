/** What prompt agents make of their tools: names that every upstream takes, and answers of a bounded size. */
import { describe, expect, it } from "vitest";
import { AgentTools, showResult, toolName } from "../../../src/services/agents/agent-tools.js";
import {
  TOOL_NAME_CHARS_MAX,
  TOOL_RESULT_CHARS_MAX,
  TOOL_RESULT_IMAGE_CHARS_MAX,
  TOOL_RESULT_IMAGES_MAX,
} from "../../../src/services/agents/limits.js";
import type { McpToolServers } from "../../../src/services/mcp/mcp-tools.js";

const text = (said: string) => ({ type: "text", text: said });
const image = (data: string) => ({ type: "image", data, mimeType: "image/png" });
const result = (...content: readonly Readonly<Record<string, unknown>>[]) => ({ isError: false, content });

describe("a tool's name", () => {
  it.each([
    ["echo", "mcp__search__echo"],
    ["a".repeat(TOOL_NAME_CHARS_MAX - "mcp__search__".length), `mcp__search__${"a".repeat(51)}`],
  ])("is the server's and its own: %s", (name, known) => {
    expect(toolName("search", name)).toBe(known);
  });

  it.each(["files.read", "a b", "größe", "a/b", "a".repeat(52), "a".repeat(300)])(
    "is shortened where upstreams take none such: %s",
    (name) => {
      const known = toolName("search", name);

      expect(known).toMatch(/^mcp__search__[A-Za-z0-9_-]+_[0-9a-f]{8}$/);
      expect(known.length).toBeLessThanOrEqual(TOOL_NAME_CHARS_MAX);
      expect(toolName("search", name)).toBe(known);
    },
  );

  it("is no other tool's", () => {
    const names = ["a.b", "a_b", "a b", "a/b", `${"a".repeat(60)}1`, `${"a".repeat(60)}2`];

    expect(new Set(names.map((name) => toolName("search", name))).size).toBe(names.length);
  });
});

describe("the tools of a run", () => {
  const servers: McpToolServers = {
    listTools: async (server) =>
      Array.from({ length: 70 }, (_, index) => ({
        name: `t${index}`,
        description: index === 0 ? "The first." : null,
        inputSchema: { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object", title: server },
      })),
    callTool: async () => result(),
    endRun: () => undefined,
  };

  it("are at most 128, as models take them", async () => {
    const tools = await AgentTools.open(servers, ["search", "ada"], { runToken: "ag_", signal: new AbortController().signal });

    expect(tools.declared).toHaveLength(128);
    expect(tools.leftOut).toBe(12);
    expect(tools.declared.slice(0, 2)).toEqual([
      {
        type: "function",
        function: { name: "mcp__search__t0", description: "The first.", parameters: { type: "object", title: "search" } },
      },
      { type: "function", function: { name: "mcp__search__t1", parameters: { type: "object", title: "search" } } },
    ]);
  });
});

describe("a tool's answer", () => {
  it.each([
    ["texts, a line apart", result(text("one"), text("two")), "one\n\ntwo"],
    ["an error", { ...result(text("no such city")), isError: true }, "The tool failed: no such city"],
    ["nothing", result(), "The tool answered nothing."],
    ["structured content alone", { ...result(), structuredContent: { degrees: 3 } }, '{"degrees":3}'],
    ["structured content beside its text", { ...result(text("3 degrees")), structuredContent: { degrees: 3 } }, "3 degrees"],
    ["sound", result({ type: "audio", data: "AAAA", mimeType: "audio/wav" }), "(sound, audio/wav, which cannot be shown)"],
    ["a link", result({ type: "resource_link", uri: "file:///a", name: "A" }), "A: file:///a"],
    ["a resource of text", result({ type: "resource", resource: { uri: "file:///a", text: "hello" } }), "file:///a:\nhello"],
    [
      "a resource of bytes",
      result({ type: "resource", resource: { uri: "file:///a", blob: "AAAA", mimeType: "application/gzip" } }),
      "file:///a (application/gzip, which cannot be shown)",
    ],
    ["a block of another kind", result({ type: "hologram", depth: 3 }), '{"type":"hologram","depth":3}'],
  ])("is shown as text: %s", (_what, answered, shown) => {
    expect(showResult(answered, false)).toEqual({ text: shown, images: [] });
  });

  it("is cut where it is longer than a model is to read", () => {
    const whole = "a".repeat(TOOL_RESULT_CHARS_MAX);

    expect(showResult(result(text(whole)), false).text).toBe(whole);
    expect(showResult(result(text(`${whole}b`)), false).text).toBe(`${whole}\n(cut here: it has ${whole.length + 1} characters)`);
  });

  it("has a bounded number of pictures, and none that is too large", () => {
    const many = Array.from({ length: TOOL_RESULT_IMAGES_MAX + 1 }, (_, index) => image(`${index}AAA`));
    const largest = image("A".repeat(TOOL_RESULT_IMAGE_CHARS_MAX));
    const larger = image("A".repeat(TOOL_RESULT_IMAGE_CHARS_MAX + 1));

    const shown = showResult(result(...many), true);
    expect(shown.images).toEqual(many.slice(0, -1).map(({ data }) => `data:image/png;base64,${data}`));
    expect(shown.text.split("\n\n").at(-1)).toBe("(a picture, image/png, which cannot be shown)");
    expect(showResult(result(larger, largest), true).images).toHaveLength(1);
    expect(showResult(result(...many), false).images).toEqual([]);
  });
});
