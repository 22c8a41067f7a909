/** The tools of a run: names that every upstream takes, and a bounded number of them. */
import { describe, expect, it } from "vitest";
import { AgentTools, toolName } from "../../../src/services/agents/agent-tools.js";
import { TOOL_NAME_CHARS_MAX } from "../../../src/services/agents/limits.js";
import type { McpToolServers } from "../../../src/services/mcp/mcp-tools.js";

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
    callTool: async () => ({ isError: false, content: [] }),
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
