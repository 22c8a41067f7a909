/** Chats as Messages requests: the strict upstream accepts every chat. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toMessagesRequest } from "../../../src/formats/anthropic-messages/upstream-request.js";
import { refusalOf } from "../../support/strict-anthropic.js";

type Loose = Record<string, unknown>;

const HI = { role: "user", content: "Hi" };
const WEATHER = { type: "function", function: { name: "weather", parameters: { type: "object", properties: {} } } };

function write(body: Loose, model = "claude-haiku-4-5") {
  const request = toMessagesRequest({ messages: [HI], max_tokens: 8_000, ...body }, model, { isStreamed: false });
  expect(refusalOf(request.fields)).toBeNull();
  return request;
}

const call = (id: string, args = "{}", name = "weather") => ({ id, type: "function", function: { name, arguments: args } });

describe("toMessagesRequest", () => {
  it("keeps cache marks of tools, texts and results, with their lifetimes", () => {
    const { fields } = write({
      tools: [{ ...WEATHER, cache_control: { type: "ephemeral", ttl: "1h" } }],
      messages: [
        { role: "user", content: [{ type: "text", text: "Hi", cache_control: { type: "ephemeral" } }] },
        { role: "assistant", content: null, tool_calls: [call("a")] },
        { role: "tool", tool_call_id: "a", content: [{ type: "text", text: "Rain", cache_control: { type: "ephemeral", ttl: "5m" } }] },
      ],
    });

    expect(fields.tools).toMatchObject([{ cache_control: { type: "ephemeral", ttl: "1h" } }]);
    expect(fields.messages[0]?.content[0]).toMatchObject({ cache_control: { type: "ephemeral" } });
    expect(fields.messages[2]?.content[0]).toEqual({
      type: "tool_result",
      tool_use_id: "a",
      content: [{ type: "text", text: "Rain" }],
      cache_control: { type: "ephemeral", ttl: "5m" },
    });
  });

  it("gives calls ids that the format takes, unlike those of earlier turns", () => {
    const turn = (result: string) => [
      { role: "assistant", content: null, tool_calls: [call("functions.weather:0")] },
      { role: "tool", tool_call_id: "functions.weather:0", content: result },
    ];
    const { fields } = write({ tools: [WEATHER], messages: [HI, ...turn("one"), ...turn("two")] });

    const ids = fields.messages.flatMap(({ content }) => content.flatMap(({ id, tool_use_id: answered }) => id ?? answered ?? []));
    expect(ids).toEqual([ids[0], ids[0], ids[2], ids[2]]);
    expect(new Set(ids).size).toBe(2);
  });

  it("reads texts, PDFs and images, and refuses what the format cannot hold, by its place", () => {
    const file = (data: string) => ({ type: "file", file: { file_data: data, filename: "a" } });
    const { fields } = write({
      messages: [
        {
          role: "user",
          content: [file("data:text/plain;base64,SGk="), file("data:application/pdf;base64,JVBERi0="), file("data:image/png;base64,iVBO")],
        },
      ],
    });

    expect(fields.messages[0]?.content).toEqual([
      { type: "document", source: { type: "text", media_type: "text/plain", data: "Hi" }, title: "a" },
      { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" }, title: "a" },
      { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBO" } },
    ]);
    const sound = { role: "user", content: [{ type: "input_audio", input_audio: { data: "", format: "wav" } }] };
    expect(() => write({ messages: [HI, sound] })).toThrow(
      expect.objectContaining({ status: 400, upstreamParam: "messages.1.content.0.type" }),
    );
  });

  it.each([
    ["claude-opus-5", { temperature: 0.5, top_k: 3 }, ["temperature", "top_k"]],
    ["claude-haiku-4-5", { temperature: 0.5, reasoning_effort: "low" }, ["temperature"]],
    ["claude-opus-5-5", { tools: [WEATHER], tool_choice: "required" }, ["tool_choice"]],
    ["claude-haiku-4-5", { tools: [WEATHER], tool_choice: "required", reasoning_effort: "low" }, ["reasoning"]],
  ])("tells %s nothing that it refuses: %j", (model, body, names) => {
    const { warnings } = write(body, model);

    for (const name of names) expect(warnings.join("\n")).toContain(name);
    expect(warnings).toHaveLength(names.length);
  });

  it("asks for a schema by the decoder where it fits, else in words", () => {
    const closed = { type: "object", properties: { a: { type: "string", minLength: 2 } }, required: ["a"] };
    const recursive = { type: "object", properties: { a: { $ref: "#" } }, required: ["a"] };
    const format = (schema: Loose) => ({ response_format: { type: "json_schema", json_schema: { name: "x", schema } } });

    expect(write(format(closed)).fields.output_config).toEqual({
      format: {
        type: "json_schema",
        schema: {
          type: "object",
          properties: { a: { type: "string", description: "min length: 2." } },
          additionalProperties: false,
          required: ["a"],
        },
      },
    });
    const { fields, warnings } = write(format(recursive));
    expect(fields).not.toHaveProperty("output_config");
    expect(JSON.stringify(fields.system)).toContain("$ref");
    expect(warnings).toHaveLength(1);
  });

  it("turns thinking off when asked to, where the model can", () => {
    const off = { provider_options: { anthropic: { thinking: { type: "disabled" } } } };

    expect(write(off, "claude-opus-5").fields.thinking).toEqual({ type: "disabled" });
    expect(write({ reasoning_effort: "none" }).fields.thinking).toEqual({ type: "disabled" });
    const always = write(off, "claude-fable-5");
    expect(always.fields).not.toHaveProperty("thinking");
    expect(always.warnings).toEqual(["reasoning: this model always thinks."]);
  });

  it("leaves out thoughts of other vendors, and takes those that another gateway names", () => {
    const details = [
      { type: "reasoning.text", text: "mine", signature: "c2ln", format: "anthropic-claude-v1" },
      { type: "reasoning.text", text: "other", signature: "xyz", format: "google-gemini-v1" },
    ];
    const { fields, warnings } = write({ messages: [HI, { role: "assistant", content: "Hm", reasoning_details: details }, HI] });

    expect(fields.messages[1]?.content).toEqual([
      { type: "thinking", thinking: "mine", signature: "c2ln" },
      { type: "text", text: "Hm" },
    ]);
    expect(warnings).toHaveLength(1);
  });

  it("is accepted by the strict upstream for every history", () => {
    const text = fc.oneof(fc.constantFrom("", " ", "Hi", "Hi ", "a\nb"), fc.string({ maxLength: 5 }));
    const id = fc.constantFrom("a", "b", "c:1", "");
    const content = fc.oneof(text, fc.array(fc.record({ type: fc.constant("text"), text }), { maxLength: 3 }));
    const message = fc.oneof(
      fc.record({ role: fc.constantFrom("user", "system", "developer"), content }),
      fc.record({ role: fc.constant("tool"), tool_call_id: id, content }),
      fc.record({
        role: fc.constant("assistant"),
        content: fc.option(content),
        tool_calls: fc.array(
          id.map((each) => call(each)),
          { maxLength: 3 },
        ),
      }),
    );
    const effort = fc.constantFrom(undefined, "none", "low", "high");
    fc.assert(
      fc.property(fc.array(message, { maxLength: 8 }), effort, fc.boolean(), (messages, reasoning, isForced) => {
        write({
          messages: [HI, ...messages, HI],
          tools: [WEATHER],
          ...(reasoning !== undefined && { reasoning_effort: reasoning }),
          ...(isForced && { tool_choice: "required" }),
        });
      }),
      { numRuns: 500 },
    );
  });
});
