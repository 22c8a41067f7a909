/** Chat bodies in the dialect of an upstream. */
import { describe, expect, it } from "vitest";
import { type ChatDialect, COMMON, inDialect, NATIVE, withStated } from "../../../src/formats/openai-chat/dialect.js";
import { dialectOf } from "../../../src/formats/openai-chat/known-dialects.js";
import { BUNDLED_VENDOR_ENTRIES } from "../../../src/services/catalog/bundled.js";
import { STRICT_VENDORS } from "../../support/strict-vendors.js";

const HI = { role: "user", content: "Hi" };

function written(body: Readonly<Record<string, unknown>>, dialect: ChatDialect) {
  const { body: other, warnings } = inDialect(body, dialect) ?? { body, warnings: [] };
  return { body: other, warnings };
}

function messageIn(message: Readonly<Record<string, unknown>>, dialect: ChatDialect) {
  const { body, warnings } = written({ messages: [HI, message] }, dialect);
  return { message: (body.messages as readonly unknown[])[1], warnings };
}

describe("a body in a dialect", () => {
  it("passes as it is when nothing has to change", () => {
    const body = { messages: [{ role: "system", content: "Be brief." }, HI], tools: [{ type: "function" }], tool_choice: "auto" };

    for (const dialect of [NATIVE, COMMON, ...STRICT_VENDORS.map(({ host, id }) => dialectOf(host, id))]) {
      expect(inDialect(body, dialect)).toBe(null);
    }
  });

  it("is not read message by message for OpenAI", () => {
    const messages = new Proxy([HI], {
      get: () => {
        throw new Error("read");
      },
    });

    expect(inDialect({ messages }, NATIVE)).toBe(null);
  });

  it("leaves the caller's objects as they were", () => {
    const body = { messages: [{ role: "developer", content: "Be brief." }, HI], max_completion_tokens: 5 };
    const before = structuredClone(body);

    expect(written(body, dialectOf("api.mistral.ai")).body).toEqual({
      messages: [{ role: "system", content: "Be brief." }, HI],
      max_tokens: 5,
    });
    expect(body).toEqual(before);
  });

  it.each([
    ["api.openai.com", "developer"],
    ["sweden.openai.azure.com", "developer"],
    ["x.services.ai.azure.com", "developer"],
    ["api.deepseek.com", "system"],
    ["openai.com.evil.example", "system"],
    ["localhost", "system"],
  ])("sends developer messages to %s as %s", (host, role) => {
    expect(messageIn({ role: "developer", content: "Be brief." }, dialectOf(host)).message).toEqual({ role, content: "Be brief." });
  });

  it.each([
    ["reasoning_content", { reasoning_content: "hm" }],
    ["reasoning", { reasoning: "hm" }],
    [
      "content",
      {
        content: [
          { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
          { type: "text", text: "Yes." },
        ],
      },
    ],
    ["none", {}],
  ] as const)("puts thoughts of any name into their place %s", (thoughts, expected) => {
    const dialect = withStated(COMMON, { thoughts, thoughtDetails: false });
    const details = [{ type: "reasoning.text", text: "hm", signature: "sig" }];
    const names = [
      { reasoning_content: "hm" },
      { reasoning: "hm", reasoning_content: "" },
      { thinking: "hm" },
      { reasoning_details: details },
    ];

    for (const fields of names) {
      const { message, warnings } = messageIn({ role: "assistant", content: "Yes.", ...fields }, dialect);
      expect(message).toEqual({ role: "assistant", content: "Yes.", ...expected });
      expect(warnings).toEqual(
        thoughts === "none" ? ["messages.1.reasoning_content: left out, because this model takes no earlier thoughts."] : [],
      );
    }
  });

  it("keeps signed thoughts where the upstream reads them, and names those that it cannot read", () => {
    const details = [{ type: "reasoning.encrypted", data: "abc" }];
    const message = { role: "assistant", content: "Yes.", reasoning: "hm", reasoning_details: details };

    expect(messageIn(message, dialectOf("openrouter.ai"))).toEqual({ message, warnings: [] });
    expect(messageIn({ role: "assistant", content: "Yes.", reasoning_details: details }, dialectOf("api.groq.com"))).toEqual({
      message: { role: "assistant", content: "Yes." },
      warnings: ["messages.reasoning_details: left out, because only the model that wrote them can read them."],
    });
  });

  it("sends a placeholder for thoughts that an upstream requires with tool calls", () => {
    const dialect = { ...dialectOf("api.deepseek.com"), needsThoughts: true };
    const calls = { role: "assistant", content: null, tool_calls: [{ id: "c1" }] };

    expect(messageIn(calls, dialect).message).toEqual({ ...calls, reasoning_content: " " });
    expect(messageIn({ ...calls, reasoning: "hm" }, dialect)).toEqual({ message: { ...calls, reasoning_content: "hm" }, warnings: [] });
    expect(messageIn({ role: "assistant", content: "Yes." }, dialect).message).toEqual({ role: "assistant", content: "Yes." });
  });

  it("sends the cap of the answer under the name that the upstream knows", () => {
    const mistral = dialectOf("api.mistral.ai");
    expect(written({ messages: [HI], max_completion_tokens: 50 }, mistral).body).toEqual({ messages: [HI], max_tokens: 50 });
    expect(written({ messages: [HI], max_completion_tokens: 50, max_tokens: 50 }, mistral).body).toEqual({
      messages: [HI],
      max_tokens: 50,
    });
    expect(written({ messages: [HI], max_tokens: 50 }, dialectOf("api.cerebras.ai")).body).toEqual({
      messages: [HI],
      max_completion_tokens: 50,
    });
    expect(inDialect({ messages: [HI], max_tokens: 50 }, dialectOf("api.groq.com"))).toBe(null);
  });

  it("warns of fields that it leaves out, unless they were null", () => {
    const body = { messages: [HI], logprobs: true, logit_bias: null, seed: 7, user: "u1" };

    expect(written(body, dialectOf("api.mistral.ai"))).toEqual({
      body: { messages: [HI], random_seed: 7 },
      warnings: ["user has no effect on this model.", "logprobs has no effect on this model."],
    });
  });

  it("leaves out fields of messages that a strict upstream refuses, and warns of those with a value", () => {
    const whole = { role: "assistant", content: "Yes.", refusal: null, annotations: [], audio: null, function_call: null };
    const cerebras = dialectOf("api.cerebras.ai");

    expect(messageIn(whole, cerebras)).toEqual({ message: { role: "assistant", content: "Yes." }, warnings: [] });
    expect(messageIn({ role: "user", name: "Ann", content: "Hi" }, dialectOf("api.mistral.ai"))).toEqual({
      message: HI,
      warnings: ["messages.name has no effect on this model."],
    });
    expect(messageIn({ role: "tool", name: "f", tool_call_id: "c", content: "1" }, dialectOf("api.mistral.ai")).message).toHaveProperty(
      "name",
    );
    const call = { id: "c1", type: "function", function: { name: "f", arguments: "{}" } };
    const signed = { role: "assistant", content: null, tool_calls: [{ ...call, extra_content: { google: {} } }] };
    expect(messageIn(signed, cerebras).message).toEqual({ role: "assistant", content: null, tool_calls: [call] });
  });

  it.each([NATIVE, COMMON])("never sends an empty list of tools, nor what refers to it", (dialect) => {
    const bare = { messages: [HI] };
    expect(written({ ...bare, tools: [], tool_choice: "auto", parallel_tool_calls: true }, dialect)).toEqual({ body: bare, warnings: [] });
    expect(written({ ...bare, tool_choice: "none" }, dialect).body).toEqual(bare);
    expect(written({ ...bare, tools: [], tool_choice: "required" }, dialect)).toEqual({
      body: bare,
      warnings: ["tool_choice has no effect without tools."],
    });
    const tools = { ...bare, tools: [{ type: "function" }], tool_choice: "required", parallel_tool_calls: false };
    expect(inDialect(tools, dialect)).toBe(null);
  });

  it("sends the picture detail original as high, and contents of text as one text where parts are not known", () => {
    const picture = (detail: string) => ({ role: "user", content: [{ type: "image_url", image_url: { url: "data:,", detail } }] });
    expect(messageIn(picture("original"), COMMON).message).toEqual(picture("high"));
    expect(messageIn(picture("low"), COMMON).message).toEqual(picture("low"));
    const parts = {
      role: "user",
      content: [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
    };
    expect(messageIn(parts, dialectOf("api.deepseek.com")).message).toEqual({ role: "user", content: "ab" });
    expect(messageIn(parts, COMMON).message).toEqual(parts);
  });

  it("takes an operator's statements over those that are known", () => {
    const dialect = withStated(dialectOf("api.mistral.ai"), {
      thoughts: "none",
      names: {},
      refuses: ["top_k"],
      outputCap: "max_completion_tokens",
    });

    expect(written({ messages: [HI], seed: 1, user: "u", top_k: 3, max_tokens: 5 }, dialect)).toEqual({
      body: { messages: [HI], seed: 1, user: "u", max_completion_tokens: 5 },
      warnings: ["top_k has no effect on this model."],
    });
  });

  it("has one for each bundled vendor of the format, by vendor and by host", () => {
    const vendors = Object.entries(BUNDLED_VENDOR_ENTRIES).filter(([, { wireFormat = "openai" }]) => wireFormat === "openai");

    expect(vendors.map(([id]) => id).sort()).toEqual(STRICT_VENDORS.map(({ id }) => id).sort());
    for (const [id, { baseUrl }] of vendors) {
      expect(dialectOf(new URL(baseUrl).hostname), id).not.toBe(COMMON);
      if (id !== "openai") expect(dialectOf("127.0.0.1", id), id).toBe(dialectOf(new URL(baseUrl).hostname));
    }
  });

  describe("of Google's OpenAI address", () => {
    const google = dialectOf("generativelanguage.googleapis.com");
    const SKIP = { extra_content: { google: { thought_signature: "skip_thought_signature_validator" } } };
    const turn = (first: object, ...others: object[]) => ({ role: "assistant", content: null, tool_calls: [first, ...others] });
    const call = { id: "c1", type: "function", function: { name: "look", arguments: "{}" } };

    it("gives the first call of a turn Google's value where its signature is missing, with a warning", () => {
      const { message, warnings } = messageIn(turn(call, { ...call, id: "c2" }), google);

      expect(message).toEqual(turn({ ...call, ...SKIP }, { ...call, id: "c2" }));
      expect(warnings).toEqual([
        "messages.tool_calls: this model gets its earlier tool calls without their thoughts, because none were sent.",
      ]);
    });

    it("keeps a signature", () => {
      const signed = turn({ ...call, extra_content: { google: { thought_signature: "c2ln" } } });

      expect(messageIn(signed, google)).toEqual({ message: signed, warnings: [] });
    });

    it("renames the signature of a history from Gemini's own format", () => {
      const { message, warnings } = messageIn(turn({ ...call, extra_content: { google: { thoughtSignature: "c2ln" } } }), google);

      expect(message).toEqual(turn({ ...call, extra_content: { google: { thought_signature: "c2ln" } } }));
      expect(warnings).toEqual([]);
    });

    it.each(["eu-aiplatform.googleapis.com", "europe-west4-aiplatform.googleapis.com", "aiplatform.googleapis.com"])(
      "is that of %s",
      (host) => {
        expect(messageIn(turn(call), dialectOf(host)).message).toEqual(turn({ ...call, ...SKIP }));
      },
    );
  });
});
