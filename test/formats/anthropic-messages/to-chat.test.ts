import { describe, expect, it } from "vitest";
import { z } from "zod";
import { messageFields } from "../../../src/formats/anthropic-messages/request.js";
import { toChat } from "../../../src/formats/anthropic-messages/to-chat.js";

const OTHER_FORMAT = { isNative: false, betas: [], hasLongContext: false, withoutThinking: null } as const;

type Loose = Record<string, unknown>;

const request = z.looseObject(messageFields);
const convert = (body: Loose, hasEffort = true) => {
  const parsed = request.parse({ model: "m", max_tokens: 100, messages: [{ role: "user", content: "u" }], ...body });
  const { chat, warnings } = toChat(parsed, { ...OTHER_FORMAT, hasEffort, concernsMoney: (name) => name === "service_tier" });
  return { chat: chat as Loose & { messages: Loose[]; tools?: Loose[] }, warnings };
};
const cached = { cache_control: { type: "ephemeral", ttl: "1h" } };
const tool = { name: "get_weather", description: "Tells the weather.", input_schema: { type: "object" } };

describe("a Messages request as a chat", () => {
  it("converts the fields that a chat has by other names", () => {
    const { chat, warnings } = convert({
      system: "Be brief.",
      stop_sequences: ["END"],
      temperature: 0.5,
      top_k: 4,
      stream: true,
      metadata: { user_id: "7" },
      output_config: { effort: "max", format: { type: "json_schema", schema: { type: "object" } } },
    });

    expect(chat).toEqual({
      model: "m",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "u" },
      ],
      max_completion_tokens: 100,
      temperature: 0.5,
      top_k: 4,
      stop: ["END"],
      stream: true,
      reasoning_effort: "xhigh",
      response_format: { type: "json_schema", json_schema: { name: "output", strict: true, schema: { type: "object" } } },
    });
    expect(warnings).toEqual([]);
  });

  it.each([
    [{ thinking: { type: "enabled", budget_tokens: 4_095 } }, "low"],
    [{ thinking: { type: "enabled", budget_tokens: 4_096 } }, "medium"],
    [{ thinking: { type: "enabled", budget_tokens: 16_384 } }, "high"],
    [{ thinking: { type: "adaptive" } }, undefined],
    [{ thinking: { type: "adaptive" }, output_config: { effort: "high" } }, "high"],
    [{ thinking: { type: "disabled" }, output_config: { effort: "high" } }, undefined],
  ])("asks for the effort of %j", (body, effort) => {
    expect(convert(body).chat.reasoning_effort).toBe(effort);
    expect(convert(body, false).chat.reasoning_effort).toBeUndefined();
  });

  it.each([
    [{ type: "auto" }, { tool_choice: "auto" }],
    [
      { type: "any", disable_parallel_tool_use: true },
      { tool_choice: "required", parallel_tool_calls: false },
    ],
    [{ type: "tool", name: "get_weather" }, { tool_choice: { type: "function", function: { name: "get_weather" } } }],
    [{ type: "none" }, { tool_choice: "none" }],
  ])("offers tools with the choice %j", (choice, expected) => {
    const { chat } = convert({ tools: [tool], tool_choice: choice });

    expect(chat.tools).toEqual([
      { type: "function", function: { name: "get_weather", description: "Tells the weather.", parameters: { type: "object" } } },
    ]);
    expect(chat).toMatchObject(expected);
  });

  it("refuses tools that Anthropic runs by their names", () => {
    expect(() => convert({ tools: [tool, { type: "web_search_20250305", name: "web_search" }] })).toThrow(/web_search_20250305/);
  });

  it("sends results of tools behind their calls, and what the user says after them", () => {
    const { chat, warnings } = convert({
      messages: [
        { role: "user", content: "Weather?" },
        {
          role: "assistant",
          content: [
            { type: "text", text: "I look." },
            { type: "tool_use", id: "a", name: "get_weather", input: { city: "Oslo" } },
            { type: "tool_use", id: "b", name: "get_weather", input: {} },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "a", content: [{ type: "text", text: "Rain" }] },
            { type: "tool_result", tool_use_id: "b", content: "no such city", is_error: true },
            { type: "text", text: "And tomorrow?" },
          ],
        },
      ],
    });

    expect(chat.messages).toEqual([
      { role: "user", content: "Weather?" },
      {
        role: "assistant",
        content: "I look.",
        tool_calls: [
          { id: "a", type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
          { id: "b", type: "function", function: { name: "get_weather", arguments: "{}" } },
        ],
      },
      { role: "tool", tool_call_id: "a", content: "Rain" },
      { role: "tool", tool_call_id: "b", content: "Error:\n\nno such city" },
      { role: "user", content: "And tomorrow?" },
    ]);
    expect(warnings).toEqual([]);
  });

  it("converts pictures and documents of each source", () => {
    const { chat } = convert({
      messages: [
        {
          role: "user",
          content: [
            { type: "image", source: { type: "base64", media_type: "image/png", data: "AA" } },
            { type: "image", source: { type: "url", url: "https://example.com/a.png" }, ...cached },
            { type: "document", source: { type: "base64", media_type: "application/pdf", data: "AA" }, title: "a.pdf" },
            { type: "document", source: { type: "text", media_type: "text/plain", data: "Text." }, title: "Title" },
            { type: "search_result", source: "https://example.com", title: "Found", content: [{ type: "text", text: "It." }] },
          ],
        },
      ],
    });

    expect(chat.messages[0]?.content).toEqual([
      { type: "image_url", image_url: { url: "data:image/png;base64,AA" } },
      { type: "image_url", image_url: { url: "https://example.com/a.png" }, ...cached },
      { type: "file", file: { file_data: "data:application/pdf;base64,AA", filename: "a.pdf" } },
      { type: "text", text: "Title\n\nText." },
      { type: "text", text: "Found\nhttps://example.com\nIt." },
    ]);
  });

  it("keeps the marks of the prompt cache in instructions, messages, results and tools", () => {
    const { chat } = convert({
      system: [
        { type: "text", text: "One." },
        { type: "text", text: "Two.", ...cached },
      ],
      tools: [{ ...tool, ...cached }],
      messages: [
        { role: "user", content: [{ type: "text", text: "u", ...cached }] },
        { role: "assistant", content: [{ type: "tool_use", id: "a", name: "get_weather", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "r", ...cached }] },
      ],
    });

    expect(chat.messages[0]?.content).toEqual([
      { type: "text", text: "One." },
      { type: "text", text: "Two.", ...cached },
    ]);
    expect(chat.messages[1]?.content).toEqual([{ type: "text", text: "u", ...cached }]);
    expect(chat.messages[3]).toEqual({ role: "tool", tool_call_id: "a", content: [{ type: "text", text: "r", ...cached }] });
    expect(chat.tools?.[0]).toMatchObject(cached);
  });

  it("leaves out the line that a coding agent changes in each request, and takes its instructions in mid-conversation", () => {
    const { chat } = convert({
      system: [
        { type: "text", text: "x-anthropic-billing-header: cc=1;" },
        { type: "text", text: "You are an agent." },
      ],
      messages: [
        { role: "user", content: "u" },
        { role: "system", content: "Tools changed." },
      ],
    });

    expect(chat.messages).toEqual([
      { role: "system", content: "You are an agent." },
      { role: "user", content: "u" },
      { role: "system", content: "Tools changed." },
    ]);
  });

  it("warns of fields and blocks that a chat does not have, without their content", () => {
    const { chat, warnings } = convert({
      context_management: { edits: [] },
      messages: [
        { role: "user", content: "u" },
        { role: "assistant", content: [{ type: "server_tool_use", id: "s", name: "web_search", input: {} }] },
        { role: "user", content: "v" },
      ],
    });

    expect(warnings).toEqual([expect.stringContaining("server_tool_use"), expect.stringContaining("context_management")]);
    expect(chat.messages).toHaveLength(2);
  });

  it.each([
    ["auto", { service_tier: "auto" }],
    ["priority", { service_tier: "priority" }],
    ["standard_only", {}],
  ])("passes a field on that concerns the price: %s", (tier, expected) => {
    const { chat, warnings } = convert({ service_tier: tier });

    expect([{ ...("service_tier" in chat && { service_tier: chat.service_tier }) }, warnings]).toEqual([expected, []]);
  });

  it.each([
    ["a block of the assistant in a user's message", "user", { type: "tool_use", id: "a", name: "n", input: {} }],
    ["a result in an assistant's message", "assistant", { type: "tool_result", tool_use_id: "a", content: "" }],
  ])("refuses %s", (_, role, block) => {
    expect(() => convert({ messages: [{ role, content: [block] }] })).toThrow(/belongs to a message of the/);
  });

  it("returns thoughts that Anthropic signed elsewhere as the vendor needs them", () => {
    const { chat } = convert({
      messages: [
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Hmm.", signature: "sig" },
            { type: "redacted_thinking", data: "secret" },
            { type: "text", text: "Yes." },
          ],
        },
      ],
    });

    expect(chat.messages[0]).toEqual({
      role: "assistant",
      content: "Yes.",
      reasoning_content: "Hmm.",
      reasoning_details: [
        { type: "reasoning.text", text: "Hmm.", signature: "sig", extra_content: { anthropic: { signature: "sig" } } },
        { type: "reasoning.encrypted", data: "secret", extra_content: { anthropic: { redactedData: "secret" } } },
      ],
    });
  });
});
