import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type ResponseInput, responseFields } from "../../../src/formats/openai-responses/request.js";
import { ResponseEvents } from "../../../src/formats/openai-responses/stream.js";
import { toChat } from "../../../src/formats/openai-responses/to-chat.js";

type Loose = Record<string, unknown>;

const request = z.looseObject(responseFields);
const convert = (body: Loose, isNative = false) => {
  const { chat, warnings } = toChat(request.parse(body) as ResponseInput, { isNative, isBilled: () => false });
  return { chat: chat as Loose & { messages: Loose[]; tools?: Loose[] }, warnings };
};

const call = (id: string) => ({ type: "function_call", call_id: id, name: "f", arguments: "{}" });
const output = (id: string, content: unknown = `out ${id}`) => ({ type: "function_call_output", call_id: id, output: content });
const user = { type: "message", role: "user", content: "u" };
const said = { type: "message", role: "assistant", content: [{ type: "output_text", text: "s" }] };
const shapes = (messages: readonly Loose[]) =>
  messages.map(({ role, tool_calls: calls, tool_call_id: id }) =>
    calls ? `calls ${(calls as Loose[]).map((each) => each.id).join(" ")}` : role === "tool" ? `tool ${id}` : role,
  );

describe("a history of Responses as a chat", () => {
  it.each([
    ["a message between a call and its output", [user, call("1"), said, output("1")], ["user", "calls 1", "tool 1", "assistant"]],
    ["a user's message between them", [user, call("1"), user, output("1")], ["user", "calls 1", "tool 1", "user"]],
    ["an interrupted call", [user, call("1"), user], ["user", "calls 1", "tool 1", "user"]],
    ["one of two outputs", [user, call("1"), call("2"), output("2")], ["user", "calls 1 2", "tool 1", "tool 2"]],
    ["an output without its call", [user, output("9")], ["user"]],
  ])("keeps outputs right behind calls with %s", (_, input, expected) => {
    const { chat, warnings } = convert({ input });

    expect(shapes(chat.messages)).toEqual(expected);
    expect(warnings).toEqual([expect.stringMatching(/^input: /)]);
  });

  it("shows pictures of outputs in a message of the user, in detail that a chat knows", () => {
    const picture = { type: "input_image", image_url: "data:image/png;base64,AA", detail: "original" };
    const input = [{ role: "user", content: [picture] }, call("1"), output("1", [picture])];

    const { chat } = convert({ input });
    const native = convert({ input }, true);

    const shown = { type: "image_url", image_url: { url: picture.image_url, detail: "high" } };
    expect(chat.messages[0]?.content).toEqual([shown]);
    expect(chat.messages.at(-1)).toEqual({ role: "user", content: [{ type: "text", text: "Output of f:" }, shown] });
    expect(native.chat.messages.at(-1)).toMatchObject({ role: "tool", content: [{ image_url: { detail: "original" } }] });
  });

  it.each([
    [{ top_logprobs: 2 }, { logprobs: true, top_logprobs: 2 }],
    [{ include: ["message.output_text.logprobs"] }, { logprobs: true }],
  ])("asks for logprobs with %j", (asked, expected) => {
    expect(convert({ input: "u", ...asked }).chat).toMatchObject(expected);
  });
});

describe("what a vendor signed", () => {
  const detail = { type: "reasoning.text", index: 0, text: "Hmm.", extra_content: { anthropic: { signature: "sig" } } };
  const extra = { google: { thoughtSignature: "t" } };
  const deltas: Loose[] = [
    { reasoning_content: "Hmm." },
    { reasoning_details: [detail] },
    { tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "f", arguments: "{}" }, extra_content: extra }] },
  ];

  it.each([
    ["as answered", (items: readonly unknown[]) => items],
    ["without ids and fields that a client does not know", (items: readonly unknown[]) => items.map(withKnownFields)],
  ])("comes back in the history, %s", (_, keep) => {
    const events = new ResponseEvents({ id: "r", createdAt: 1, model: "m", input: { input: "u" } as never, tools: [] });
    for (const delta of deltas) events.read({ choices: [{ index: 0, delta }] });
    const items = keep(events.end().response.output);

    const { chat } = convert({ input: [user, ...items, output("call_1")] });

    expect(chat.messages[1]).toMatchObject({
      role: "assistant",
      content: null,
      reasoning_content: "Hmm.",
      reasoning_details: [detail],
      tool_calls: [{ id: "call_1", extra_content: extra }],
    });
    expect(shapes(chat.messages)).toEqual(["user", "calls call_1", "tool call_1"]);
  });

  it("is read within one bound for all items, and as whole entries", () => {
    const encode = (thoughts: unknown[]) => `sluice1.${Buffer.from(JSON.stringify({ thoughts })).toString("base64url")}`;
    const many = {
      type: "reasoning",
      summary: [],
      encrypted_content: encode(Array.from({ length: 5_000 }, () => ({ type: "t", text: "a" }))),
    };
    const empty = { type: "reasoning", summary: [], encrypted_content: encode([{}, {}]) };

    const { chat } = convert({ input: [user, ...Array.from({ length: 50 }, () => many), empty, said] });

    // Thirteen of them are within 200,000 brackets, braces and commas.
    expect(chat.messages[1]?.reasoning_details).toHaveLength(65_000);
  });

  it("is ignored when another vendor signed it", () => {
    const { chat } = convert({ input: [user, { type: "reasoning", summary: [], encrypted_content: "gAAAA" }, said] });

    expect(chat.messages[1]).toEqual({ role: "assistant", content: [{ type: "text", text: "s" }] });
  });
});

function withKnownFields(item: unknown): unknown {
  const { id: _, status: __, extra_content: ___, ...known } = item as Loose;
  return known;
}

describe("a group of tools", () => {
  const group = {
    type: "namespace",
    name: "mcp__sluice",
    description: "d",
    tools: [{ type: "function", name: "list_models", parameters: {} }, { type: "custom", name: "patch" }, { type: "web_search" }],
  };

  it("is offered one by one under joined names, also in the history and in the choice", () => {
    const called = { ...call("1"), name: "list_models", namespace: "mcp__sluice" };
    const choice = { type: "function", name: "list_models", namespace: "mcp__sluice" };

    const { chat, warnings } = convert({ input: [user, called, output("1")], tools: [group], tool_choice: choice });

    expect(chat.tools).toMatchObject([
      { type: "function", function: { name: "mcp__sluice__list_models" } },
      { type: "function", function: { name: "mcp__sluice__patch" } },
    ]);
    expect(chat.tool_choice).toEqual({ type: "function", function: { name: "mcp__sluice__list_models" } });
    expect(chat.messages[1]).toMatchObject({ tool_calls: [{ function: { name: "mcp__sluice__list_models" } }] });
    expect(warnings).toEqual([expect.stringMatching(/^tools: web_search left out/)]);
  });

  it("counts as a tool that can be required, and is allowed by its name", () => {
    const other = { type: "function", name: "other", parameters: {} };
    const allowed = { type: "allowed_tools", mode: "required", tools: [{ type: "namespace", name: "mcp__sluice" }] };

    expect(convert({ input: "u", tools: [group], tool_choice: "required" }).chat.tool_choice).toBe("required");
    expect(convert({ input: "u", tools: [group, other], tool_choice: allowed }).chat.tools).toHaveLength(2);
  });

  it.each([
    ["at the bound", "n".repeat(61)],
    ["past it", "n".repeat(62)],
  ])("has names of at most 64 characters, %s", (_, name) => {
    const { chat } = convert({ input: "u", tools: [{ type: "namespace", name: "a", tools: [{ type: "function", name }] }] });

    expect(chat.tools).toMatchObject([{ function: { name: expect.stringMatching(/^a__n{50}[n_0-9a-f]{11}$/) } }]);
  });
});
