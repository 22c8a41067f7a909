import { describe, expect, it } from "vitest";
import { refusedFieldsIn, remediable } from "../../../src/formats/openai-chat/refused-fields.js";

const STREAMED = { stream: true, stream_options: { include_usage: true }, user: "u", metadata: { a: "b" } };
const said = (content: unknown) => ({ ...STREAMED, messages: [{ role: "user", content }] });

/** The fields that a request is repeated without. */
function leftOut(sent: Readonly<Record<string, unknown>>, message: string, param?: string): readonly string[] {
  return remediable(refusedFieldsIn({ error: { message, param } }, message, param), sent);
}

describe("fields that an upstream refuses", () => {
  it.each([
    ["Unknown parameter: 'stream_options'", "stream_options"],
    ["Unrecognized request argument supplied: stream_options", undefined],
    ['json: unknown field "stream_options"', undefined],
  ])("are read from %s", (message, param) => {
    expect(leftOut(said("Hi"), message, param)).toEqual(["stream_options"]);
  });

  it.each([
    ["a picture's address", said([{ type: "image_url", image_url: { url: "https://a.example/unsupported-stream_options.png" } }])],
    ["an address that the upstream decodes", said([{ type: "image_url", image_url: { url: "https://a.example/Stream%5foptions" } }])],
    ["a message", said("unsupported stream_options")],
    ["a tool's name", { ...said("Hi"), tools: [{ type: "function", function: { name: "stream_options" } }] }],
    ["a name in a tool's schema", { ...said("Hi"), tools: [{ type: "function", function: { parameters: { stream_options: {} } } }] }],
    ["a name in metadata", { ...said("Hi"), metadata: { stream_options: "x" } }],
    [
      "a call's arguments",
      { ...said("Hi"), messages: [{ role: "assistant", tool_calls: [{ function: { arguments: '{"stream\\u005foptions":1}' } }] }] },
    ],
  ])("are none that stand in %s, which the message may repeat", (_, sent) => {
    const message = "Error while downloading https://a.example/unsupported-stream_options.png";

    expect(leftOut(sent, message)).toEqual([]);
  });

  it("are those of the parameter alone, where it names one", () => {
    expect(leftOut(said("Hi"), "Unsupported parameter: use user instead of stream_options", "user")).toEqual(["user"]);
    expect(leftOut(said("stream_options"), "Timeout: unsupported stream_options", "url")).toEqual([]);
    expect(leftOut(said("stream_options"), "Unsupported parameter", "stream_options")).toEqual(["stream_options"]);
  });

  it("are fields of the body, not a caller's of the same name in a message", () => {
    const entry = { type: "extra_forbidden", msg: "Extra inputs are not permitted" };
    const inMessage = refusedFieldsIn({ detail: [{ ...entry, loc: ["body", "messages", 0, "user", "metadata"] }] }, "m", undefined);
    const inBody = refusedFieldsIn({ detail: [{ ...entry, loc: ["body", "metadata"] }] }, "m", undefined);

    expect(inMessage.refusedFields).toEqual([]);
    expect(inBody.refusedFields).toEqual(["metadata"]);
  });
});
