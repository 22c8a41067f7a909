import { describe, expect, it } from "vitest";
import { z } from "zod";
import { toCamel, withCamelNames } from "../../../src/formats/gemini/field-names.js";
import { toJsonSchema } from "../../../src/formats/gemini/json-schema.js";
import { generateContentFields } from "../../../src/formats/gemini/request.js";
import { toChat } from "../../../src/formats/gemini/to-chat.js";
import { EXCESS_MAX, findExcess, processorMs } from "../../support/growth.js";

type Loose = Record<string, unknown>;

const request = z.preprocess(withCamelNames, z.looseObject(generateContentFields));
const hello = [{ role: "user", parts: [{ text: "u" }] }];
const convert = (body: Loose, hasEffort = true) => {
  const parsed = request.parse({ contents: hello, ...body });
  const { chat, warnings } = toChat("m", parsed, {
    hasEffort,
    isNative: false,
    isPricedTool: () => false,
    concernsMoney: (name) => name === "cachedContent",
  });
  return { chat: chat as Loose & { messages: Loose[]; tools?: Loose[] }, warnings };
};
const messagesOf = (contents: readonly Loose[]) => convert({ contents }).chat.messages;
const call = (name: string, id?: string) => ({ functionCall: { name, args: { a: 1 }, ...(id !== undefined && { id }) } });
const result = (name: string, response: Loose, id?: string) => ({ functionResponse: { name, response, ...(id !== undefined && { id }) } });

describe("a generateContent request as a chat", () => {
  it("converts the fields that a chat has by other names", () => {
    const { chat, warnings } = convert({
      systemInstruction: { parts: [{ text: "Be brief." }, { text: "Be kind." }] },
      labels: { team: "7" },
      generationConfig: {
        ...{ temperature: 0.5, topP: 0.9, topK: 4, candidateCount: 2, maxOutputTokens: 100, stopSequences: ["END"] },
        ...{
          presencePenalty: 1,
          frequencyPenalty: 1,
          seed: -7,
          responseLogprobs: true,
          logprobs: 3,
          responseModalities: ["TEXT", "IMAGE"],
        },
        responseMimeType: "application/json",
        responseSchema: { type: "OBJECT" },
        thinkingConfig: { thinkingLevel: "HIGH", includeThoughts: true },
      },
    });

    expect(warnings).toEqual([]);
    expect(chat).toEqual({
      model: "m",
      messages: [
        { role: "system", content: "Be brief.\n\nBe kind." },
        { role: "user", content: "u" },
      ],
      ...{ temperature: 0.5, top_p: 0.9, top_k: 4, n: 2, max_completion_tokens: 100, stop: ["END"] },
      ...{ presence_penalty: 1, frequency_penalty: 1, seed: 7, logprobs: true, top_logprobs: 3, modalities: ["text", "image"] },
      response_format: { type: "json_schema", json_schema: { name: "output", schema: { type: "object" } } },
      reasoning_effort: "high",
    });
  });

  it("reads names in snake_case alike, but not those of the client's own values", () => {
    const body = {
      system_instruction: { parts: [{ text: "s" }] },
      generation_config: { max_output_tokens: 5, thinking_config: { thinking_budget: 0 } },
      tools: [{ function_declarations: [{ name: "f", parameters: { type: "OBJECT", properties: { some_name: { type: "STRING" } } } }] }],
      contents: [...hello, { role: "model", parts: [{ function_call: { name: "f", args: { some_name: "x" } } }] }],
    };

    const { chat } = convert(body);

    expect(chat).toMatchObject({
      max_completion_tokens: 5,
      reasoning_effort: "none",
      messages: [{ content: "s" }, {}, { tool_calls: [{ function: { arguments: '{"some_name":"x"}' } }] }, { role: "tool" }],
      tools: [{ function: { parameters: { properties: { some_name: { type: "string" } } } } }],
    });
  });

  it.each([
    [0, "none"],
    [1, "low"],
    [4_096, "medium"],
    [16_384, "high"],
    [-1, undefined],
  ])("takes a budget of %d as the effort %s, where the model has one", (thinkingBudget, effort) => {
    const body = { generationConfig: { thinkingConfig: { thinkingBudget } } };

    expect(convert(body).chat.reasoning_effort).toBe(effort);
    expect(convert(body, false).chat.reasoning_effort).toBeUndefined();
  });

  it("names fields that are left out, and passes on those that concern the price", () => {
    const { chat, warnings } = convert({ cachedContent: "c", other: 1, generationConfig: { audioTimestamp: true } });

    expect(chat.cachedContent).toBe("c");
    expect(warnings).toEqual(["other, generationConfig.audioTimestamp: left out, because no chat has such a field."]);
  });

  it("warns of safety settings that filter only", () => {
    const settings = (threshold: string) => convert({ safetySettings: [{ category: "c", threshold }] }).warnings;

    expect(settings("BLOCK_NONE")).toEqual([]);
    expect(settings("BLOCK_LOW_AND_ABOVE")).toEqual([expect.stringContaining("safetySettings")]);
  });
});

describe("functions", () => {
  const tools = [
    {
      functionDeclarations: [
        { name: "f", parametersJsonSchema: { type: "object" } },
        { name: "g", description: "d" },
      ],
    },
  ];
  const choice = (mode: string, allowedFunctionNames?: string[]) =>
    convert({ tools, toolConfig: { functionCallingConfig: { mode, allowedFunctionNames } } }).chat;
  const names = ({ tools: offered }: Loose) => (offered as { function: { name: string } }[]).map(({ function: { name } }) => name);

  it.each<[string, string[] | undefined, unknown, string[]]>([
    ["AUTO", undefined, undefined, ["f", "g"]],
    ["VALIDATED", undefined, undefined, ["f", "g"]],
    ["NONE", undefined, "none", ["f", "g"]],
    ["ANY", undefined, "required", ["f", "g"]],
    ["ANY", ["g"], { type: "function", function: { name: "g" } }, ["g"]],
    ["ANY", ["g", "f"], "required", ["f", "g"]],
    ["AUTO", ["f"], undefined, ["f"]],
  ])("are chosen by the mode %s with %j", (mode, allowed, expected, offered) => {
    expect([choice(mode, allowed).tool_choice, names(choice(mode, allowed))]).toEqual([expected, offered]);
  });

  it("refuses names that are not declared, and tools that Google runs", () => {
    expect(() => choice("ANY", ["h"])).toThrow("None of these functions is declared");
    expect(() => convert({ tools: [...tools, { urlContext: {} }] })).toThrow("The tool urlContext is run by Google");
  });
});

describe("contents", () => {
  it("keeps calls with their results by id", () => {
    const messages = messagesOf([
      ...hello,
      { role: "model", parts: [{ text: "I look." }, call("f", "1"), call("f", "2")] },
      { role: "user", parts: [result("f", { output: "b" }, "2"), result("f", { n: 1 }, "1"), { text: "and?" }] },
    ]);

    expect(messages.slice(1)).toEqual([
      {
        role: "assistant",
        content: "I look.",
        tool_calls: [
          { id: "1", type: "function", function: { name: "f", arguments: '{"a":1}' } },
          { id: "2", type: "function", function: { name: "f", arguments: '{"a":1}' } },
        ],
      },
      { role: "tool", tool_call_id: "1", content: '{"n":1}' },
      { role: "tool", tool_call_id: "2", content: "b" },
      { role: "user", content: "and?" },
    ]);
  });

  it("gives results without ids to the calls of their name, in order", () => {
    const messages = messagesOf([
      ...hello,
      { role: "model", parts: [call("f"), call("g"), call("f")] },
      { role: "function", parts: [result("f", { result: "1" }), result("g", { error: "no" }), result("f", { output: "2" })] },
    ]);
    const ids = ((messages[1]?.tool_calls ?? []) as { id: string }[]).map(({ id }) => id);

    expect(new Set(ids).size).toBe(3);
    expect(messages.slice(2)).toEqual(
      ["1", "Error: no", "2"].map((content, index) => ({ role: "tool", tool_call_id: ids[index], content })),
    );
  });

  it("takes contents of the model in a row as one turn, as clients keep a stream", () => {
    const pieces = ["Hel", "lo"].map((text) => ({ role: "model", parts: [{ text }] }));

    expect(messagesOf([...hello, ...pieces, { role: "model", parts: [call("f", "1")] }])[1]).toMatchObject({
      content: "Hello",
      tool_calls: [{ id: "1" }],
    });
  });

  it("keeps thoughts apart from the text", () => {
    const parts = [{ text: "Hmm.", thought: true }, { text: "Yes." }];

    expect(messagesOf([...hello, { role: "model", parts }])[1]).toEqual({ role: "assistant", content: "Yes.", reasoning_content: "Hmm." });
  });

  it.each<[Loose, Loose]>([
    [{ inlineData: { mimeType: "image/png", data: "a-_b" } }, { type: "image_url", image_url: { url: "data:image/png;base64,a+/b" } }],
    [{ inlineData: { mimeType: "audio/mpeg", data: "AAAA" } }, { type: "input_audio", input_audio: { data: "AAAA", format: "mp3" } }],
    [{ inlineData: { mimeType: "text/csv", data: "YSxi" } }, { type: "text", text: "a,b" }],
    [{ fileData: { mimeType: "image/png", fileUri: "https://e.com/a" } }, { type: "image_url", image_url: { url: "https://e.com/a" } }],
    [
      { inlineData: { mimeType: "application/pdf", data: "AAAA" } },
      { type: "file", file: { file_data: "data:application/pdf;base64,AAAA", filename: "document.pdf" } },
    ],
  ])("shows %j", (part, expected) => {
    const [message] = messagesOf([{ role: "user", parts: [part, { inlineData: { mimeType: "image/gif", data: "AAAA" } }] }]);

    expect((message?.content as Loose[] | undefined)?.[0]).toEqual(expected);
  });

  it.each([
    [[{ role: "user", parts: [call("f")] }], "contents.0.parts.0.functionCall"],
    [[{ role: "model", parts: [result("f", {})] }], "contents.0.parts.0.functionResponse"],
    [
      [{ parts: [{ fileData: { fileUri: "https://generativelanguage.googleapis.com/v1beta/files/x" } }] }],
      "contents.0.parts.0.fileData.fileUri",
    ],
  ])("refuses %j", (contents, param) => {
    expect(() => convert({ contents })).toThrow(expect.objectContaining({ param }));
  });

  it("takes time in proportion to the calls and their results", () => {
    const excess = findExcess(
      (size) => {
        const calls = Array.from({ length: size }, () => call("f"));
        const results = Array.from({ length: size }, () => result("f", { output: "x" }));
        const parsed = request.parse({
          contents: [
            { role: "model", parts: calls },
            { role: "user", parts: results },
          ],
        });
        return processorMs(() =>
          toChat("m", parsed, { hasEffort: false, isNative: false, isPricedTool: () => false, concernsMoney: () => false }),
        );
      },
      { least: 1_000, steps: 3 },
    );

    expect(excess).toBeLessThan(EXCESS_MAX);
  });
});

describe("Google's schemas", () => {
  it("are JSON Schema with types in small letters, counts as numbers and null as a type", () => {
    expect(
      toJsonSchema({
        type: "OBJECT",
        propertyOrdering: ["type"],
        properties: {
          type: { type: "STRING", nullable: true, enum: ["A"] },
          list: { type: "ARRAY", min_items: "1", items: { anyOf: [{ type: "NUMBER" }], nullable: true } },
        },
      }),
    ).toEqual({
      type: "object",
      properties: {
        type: { type: ["string", "null"], enum: ["A", null] },
        list: { type: "array", minItems: 1, items: { anyOf: [{ type: "number" }, { type: "null" }] } },
      },
    });
  });

  it("keep names that begin like others", () => {
    expect(["max_output_tokens", "__proto__", "a__b", "A_b", "maxOutputTokens"].map(toCamel)).toEqual([
      "maxOutputTokens",
      ...["__proto__", "a__b", "A_b", "maxOutputTokens"],
    ]);
  });
});
