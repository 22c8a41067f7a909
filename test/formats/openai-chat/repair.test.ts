import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { repairHistory } from "../../../src/formats/openai-chat/repair.js";

type Message = Record<string, unknown>;

const options = { field: "messages", showsMediaApart: true };
const user = (content: unknown): Message => ({ role: "user", content });
const said = (content: string): Message => ({ role: "assistant", content });
const calls = (...ids: string[]): Message => ({ role: "assistant", content: null, tool_calls: ids.map((id) => call(id)) });
const call = (id: string) => ({ id, type: "function", function: { name: `tool_${id}`, arguments: "{}" } });
const output = (id: string, content: unknown = `out ${id}`): Message => ({ role: "tool", tool_call_id: id, content });

const shape = ({ role, content, tool_calls: made, tool_call_id: id }: Readonly<Message>) =>
  role === "tool" ? `tool ${id}` : made ? `calls ${(made as { id: string }[]).map((each) => each.id).join(" ")}` : `${role} ${content}`;
const shapes = (messages: readonly Readonly<Message>[]) => messages.map(shape);

describe("repairHistory", () => {
  it.each([
    ["a message of the assistant", [user("u"), calls("a"), said("wait"), output("a")], ["user u", "calls a", "tool a", "assistant wait"]],
    ["a message of the user", [calls("a"), user("u"), output("a")], ["calls a", "tool a", "user u"]],
    ["calls one by one", [calls("a"), calls("b"), output("a"), output("b")], ["calls a b", "tool a", "tool b"]],
    [
      "calls around a text",
      [calls("a"), said("t"), calls("b"), output("b"), output("a")],
      ["calls a b", "tool a", "tool b", "assistant t"],
    ],
    ["outputs in another order", [calls("a", "b"), output("b"), output("a")], ["calls a b", "tool a", "tool b"]],
  ])("puts outputs behind their calls past %s", (_, messages, expected) => {
    const repaired = repairHistory(messages, options);

    expect(shapes(repaired.messages)).toEqual(expected);
  });

  it("says that an output is missing, of one call of a turn and of an interrupted one", () => {
    const { messages, warnings } = repairHistory([calls("a", "b"), output("a"), user("next"), calls("c")], options);

    expect(shapes(messages)).toEqual(["calls a b", "tool a", "tool b", "user next", "calls c", "tool c"]);
    expect(messages[2]).toEqual({ role: "tool", tool_call_id: "b", content: "No output: the call was interrupted." });
    expect(warnings).toEqual(["messages: 2 of the calls had no output; the model was told that they were interrupted."]);
  });

  it("leaves out outputs without a call, and a second output of one", () => {
    const { messages, warnings } = repairHistory([output("x"), calls("a"), output("a"), output("a", "again"), user("u")], options);

    expect(shapes(messages)).toEqual(["calls a", "tool a", "user u"]);
    expect(messages[1]?.content).toBe("out a");
    expect(warnings).toEqual(["messages: 2 of the outputs belong to no call before them, and were left out."]);
  });

  it("gives two calls with one id their outputs in order", () => {
    const history = [calls("a", "a"), output("a", "first"), output("a", "second")];

    expect(repairHistory(history, options).messages).toBe(history);
  });

  it("keeps turns apart whose calls have the same id", () => {
    const history = [calls("0"), output("0", "first"), calls("0"), output("0", "second")];

    const { messages, warnings } = repairHistory(history, options);

    expect(messages).toBe(history);
    expect(warnings).toEqual([]);
  });

  it("shows pictures of an output behind the turn's outputs where a tool's message holds text only", () => {
    const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
    const history = [calls("a", "b"), output("a", [{ type: "text", text: "see" }, picture]), output("b", [picture])];

    const { messages, warnings } = repairHistory(history, options);
    const untouched = repairHistory(history, { ...options, showsMediaApart: false });

    expect(messages.slice(1)).toEqual([
      output("a", [{ type: "text", text: "see" }]),
      output("b", "The output follows in the next message."),
      user([{ type: "text", text: "Output of tool_a:" }, picture, { type: "text", text: "Output of tool_b:" }, picture]),
    ]);
    expect(warnings).toEqual(["messages: pictures and files of tools' outputs are given in a message of the user behind them."]);
    expect(untouched.messages).toBe(history);
  });

  it("gives back the same list when nothing has to change", () => {
    const history = [user("u"), { ...calls("a", "b"), content: "Let me see." }, output("a"), output("b"), said("done")];

    expect(repairHistory(history, options).messages).toBe(history);
    expect(repairHistory([user("u")], options)).toEqual({ messages: [user("u")], warnings: [] });
  });

  it("leaves every call followed at once by its outputs, and loses no other message, for any history", () => {
    const id = fc.constantFrom("a", "b", "c");
    const message = fc.oneof(
      fc.array(id, { minLength: 1, maxLength: 3 }).map((ids) => calls(...new Set(ids))),
      id.map((each) => output(each)),
      fc.constantFrom("x", "y").map(user),
      fc.constantFrom("x", "y").map(said),
    );

    fc.assert(
      fc.property(fc.array(message, { maxLength: 14 }), (history) => {
        const { messages } = repairHistory(history, options);

        for (const [index, { tool_calls: made }] of messages.entries()) {
          const ids = ((made ?? []) as { id: string }[]).map((each) => each.id);
          expect(messages.slice(index + 1, index + 1 + ids.length).map(({ role, tool_call_id }) => [role, tool_call_id])).toEqual(
            ids.map((each) => ["tool", each]),
          );
        }
        const count = (list: readonly Readonly<Message>[], test: (each: Readonly<Message>) => boolean) => list.filter(test).length;
        const callCount = (list: readonly Readonly<Message>[]) =>
          list.reduce((sum, { tool_calls: made }) => sum + ((made as unknown[]) ?? []).length, 0);
        expect(count(messages, ({ role }) => role === "tool")).toBe(callCount(messages));
        expect(callCount(messages)).toBe(callCount(history));
        expect(count(messages, ({ role }) => role === "user")).toBe(count(history, ({ role }) => role === "user"));
        expect(repairHistory(messages, options).messages).toBe(messages);
      }),
      { numRuns: 2_000 },
    );
  });
});
