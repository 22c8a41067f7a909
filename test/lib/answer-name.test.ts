import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AnswerName } from "../../src/lib/answer-name.js";

const name = new AnswerName("acme/chat");

/** The document as the caller reads it: passed through, or serialized again where that is impossible. */
function passed(json: string): { readonly text: string; readonly isRewritten: boolean } {
  const object = JSON.parse(json) as Record<string, unknown>;
  const bytes = name.inBytes(Buffer.from(json), object);
  return { text: bytes ? Buffer.from(bytes).toString() : JSON.stringify(name.inObject(object)), isRewritten: bytes === null };
}

/** The keys of the document itself, each time that they are written. */
function keysOf(json: string): string[] {
  const keys: string[] = [];
  let depth = 0;
  for (const [token, text] of json.matchAll(/"((?:[^"\\]|\\.)*)"(?=\s*:)|"(?:[^"\\]|\\.)*"|[{}[\]]/g)) {
    if (token === "{" || token === "[") depth += 1;
    else if (token === "}" || token === "]") depth -= 1;
    else if (text !== undefined && depth === 1) keys.push(JSON.parse(`"${text}"`) as string);
  }
  return keys;
}

describe("the name in an answer", () => {
  it.each([
    ["where it stands", '{"id":"a","model":"secret","choices":[]}', '{"id":"a","model":"acme/chat","choices":[]}'],
    ["with white space", '{ "model" :\n"secret" , "n": 1.0 }', '{ "model" :\n"acme/chat" , "n": 1.0 }'],
    [
      "beside the word as a text",
      '{"model":"secret","a":"model","b":"\\"model\\": 1"}',
      '{"model":"acme/chat","a":"model","b":"\\"model\\": 1"}',
    ],
    ["before escapes of other letters", '{"model":"secret","a":"\\u00e9\\u4f60\\n"}', '{"model":"acme/chat","a":"\\u00e9\\u4f60\\n"}'],
    ["where there was none", '{"id":"a"}', '{"model":"acme/chat","id":"a"}'],
    ["where only something further in has one", '{"x":{"model":1}}', '{"model":"acme/chat","x":{"model":1}}'],
    ["without who was asked in turn", '{"provider":"Them","model":"secret"}', '{"model":"acme/chat"}'],
    ["without who was asked at the end", '{"model":"secret" , "provider" : "Them"}', '{"model":"acme/chat" }'],
  ])("is replaced %s", (_what, json, expected) => {
    expect(passed(json)).toEqual({ text: expected, isRewritten: false });
  });

  it.each([
    ["is further in, too", '{"x":{"model":"secret"},"model":"secret"}'],
    ["comes twice", '{"model":"one","model":"two"}'],
    ["is written with escapes", '{"\\u006dodel":"secret","a":1}'],
    ["is written with escapes and without", '{"mod\\u0065l":"secret","model":"secret"}'],
    ["holds escapes", '{"model":"se\\u0063ret\\"","a":1}'],
    ["is no text", '{"model":null,"a":"b"}'],
    ["is an object", '{"model":{"model":"secret"},"a":"b"}'],
    ["has the end of another key", '{"x\\"model":1,"model":"secret"}'],
    ["is the only field beside none", "{}"],
    ["stands beside a provider that is no text", '{"model":"secret","provider":{"name":"Them"}}'],
    ["stands beside a provider with escapes", '{"model":"secret","\\u0070rovider":"Them"}'],
  ])("is replaced by a new serialization where it %s", (_what, json) => {
    const { text, isRewritten } = passed(json);

    expect(isRewritten).toBe(true);
    expect(keysOf(text).filter((key) => key === "model" || key === "provider")).toEqual(["model"]);
    expect(JSON.parse(text)).toMatchObject({ model: "acme/chat" });
  });

  it("is replaced in an event of a stream, and when it is a megabyte long", () => {
    const event = `data: {"id":"a","model":"${"x".repeat(2 ** 20)}","choices":[]}\n\n`;
    const bytes = name.inBytes(Buffer.from(event), JSON.parse(event.slice(6)) as Record<string, unknown>);

    expect(Buffer.from(bytes ?? []).toString()).toBe('data: {"id":"a","model":"acme/chat","choices":[]}\n\n');
  });

  it("is the only change, for any bytes of an upstream", () => {
    const key = fc.constantFrom("model", "provider", "a", 'x"model', '"model":', "__proto__");
    const value: fc.Arbitrary<string> = fc.letrec<{ value: string }>((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        fc.constantFrom('"secret"', "null", "1e3", '"model"', '"\\"model\\":\\"x\\""', '"\\\\"', '""', '"\\u006dodel"'),
        fc.array(tie("value"), { maxLength: 2 }).map((items) => `[${items.join(" , ")}]`),
        fc.array(fc.tuple(key, tie("value")), { maxLength: 3 }).map(toText),
      ),
    })).value;
    const document = fc.array(fc.tuple(key, value), { maxLength: 5 }).map(toText);

    fc.assert(
      fc.property(document, fc.boolean(), (written, isEscaped) => {
        const json = isEscaped ? written.replace('"model"', '"\\u006Dodel"') : written;
        const { text } = passed(json);

        const { model: _, provider: _provider, ...others } = JSON.parse(json) as Record<string, unknown>;
        const { model, ...rest } = JSON.parse(text) as Record<string, unknown>;
        expect(keysOf(text).filter((one) => one === "model" || one === "provider")).toEqual(["model"]);
        expect(model).toBe("acme/chat");
        expect(rest).toEqual(others);
      }),
      { numRuns: 500 },
    );
  });
});

function toText(fields: readonly (readonly [string, string])[]): string {
  return `{${fields.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(",")}}`;
}
