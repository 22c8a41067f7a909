import { describe, expect, it } from "vitest";
import { redactSecrets, toEmbeddedError, toStatusError } from "../../../src/formats/openai-chat/errors.js";

const API_KEY = "vendor-key-0123456789";

function messageOf(body: unknown, contentType = "application/json"): string | undefined {
  return toStatusError(400, { "content-type": contentType }, typeof body === "string" ? body : JSON.stringify(body), API_KEY)
    .upstreamMessage;
}

describe("an error status", () => {
  it("carries the status, the message and the parameter", () => {
    const body = JSON.stringify({ error: { message: "Bad.", type: "invalid_request_error", param: "messages.0.content", code: null } });

    const error = toStatusError(422, { "content-type": "application/json" }, body, null);

    expect(error).toMatchObject({ kind: "status", status: 422, upstreamMessage: "Bad.", upstreamParam: "messages.0.content" });
  });

  it("is 401 where Google refuses a key with 400", () => {
    const detail = { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID", domain: "googleapis.com" };
    const error = { code: 400, message: "API key not valid.", status: "INVALID_ARGUMENT", details: [detail] };
    const statusOf = (body: unknown) => toStatusError(400, { "content-type": "application/json" }, JSON.stringify(body), null).status;

    expect([statusOf({ error }), statusOf([{ error }])]).toEqual([401, 401]);
    expect(statusOf({ error: { ...error, details: [{ reason: "FIELD_INVALID" }] } })).toBe(400);
  });

  it.each([
    ["a text as error", { error: "Bad." }],
    ["a message", { message: "Bad." }],
    ["a detail", { detail: "Bad." }],
    ["a list of details", { detail: [{ loc: ["body", "model"], msg: "Bad.", type: "missing" }] }],
    ["a list of errors", { errors: [{ message: "Bad." }] }],
    ["an error in a list", [{ error: { code: 400, message: "Bad.", status: "INVALID_ARGUMENT" } }]],
    ["an error without a message of its own", { error: { code: 400 }, message: "Bad." }],
  ])("finds the message in %s", (_name, body) => {
    expect(messageOf(body)).toBe("Bad.");
  });

  it("takes plain text, and nothing of a page", () => {
    expect(messageOf("no such route\n", "text/plain; charset=utf-8")).toBe("no such route");
    expect(messageOf("<html><body>nginx</body></html>", "text/html")).toBeUndefined();
    expect(messageOf("  <!doctype html>", "text/plain")).toBeUndefined();
    expect(messageOf("")).toBeUndefined();
    expect(messageOf({ error: { message: "  " } })).toBeUndefined();
    expect(messageOf({ error: { message: 5 } })).toBeUndefined();
    expect(messageOf("[".repeat(60_000))).toBeUndefined();
  });

  it("cuts a message that is longer than any honest one", () => {
    expect(messageOf({ error: { message: "x".repeat(5_000) } })).toHaveLength(1_000);
  });
});

describe("redaction", () => {
  it.each([
    ["our secret keys", "Key sk_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefg failed.", "Key [redacted] failed."],
    ["our publishable keys", "pk_AbCdEfGhIjKlMnOpQrStUv", "[redacted]"],
    ["run tokens", "ag_eyJhIjoxfQ.c2lnbmF0dXJl", "[redacted]"],
    ["vendors' keys", "Incorrect API key provided: sk-proj-abcDEF123_456-xyz. See", "Incorrect API key provided: [redacted] See"],
    ["keys that are half masked", "Incorrect API key provided: sk-abcd*********wxyz", "Incorrect API key provided: [redacted]"],
    ["Google's keys", "AIzaSyA1234567890abcdefghijklmnopqrstu", "[redacted]"],
    ["bearer tokens", 'header "Authorization: Bearer abc.def" is bad', 'header "Authorization: [redacted]" is bad'],
    ["the configured key, wherever it stands", `x=${API_KEY}&y=${API_KEY}`, "x=[redacted]&y=[redacted]"],
    ["nothing else", "The task is risk-free; ask_me_anything works.", "The task is risk-free; ask_me_anything works."],
  ])("hides %s", (_name, text, expected) => {
    expect(redactSecrets(text, API_KEY)).toBe(expected);
  });

  it("hides a key that the cut would have halved", () => {
    const message = `${"x".repeat(990)} ${API_KEY}`;

    expect(messageOf({ error: { message } })).not.toContain("vendor");
  });

  it("does not take a short configured key for a secret in every word", () => {
    expect(redactSecrets("a test of none", "none")).toBe("a test of none");
  });
});

describe("an error inside an answer", () => {
  it.each([
    [{ code: 429, message: "Slow down." }, 429],
    [{ code: "503", message: "Busy." }, 503],
    [{ status: 401, message: "No." }, 401],
    [{ type: "invalid_request_error", message: "Bad." }, 400],
    [{ code: "rate_limit_exceeded", type: "requests", message: "Slow down." }, 429],
    [{ code: "context_length_exceeded", type: "invalid_request_error", message: "Too long." }, 400],
    [{ type: "server_error", message: "Oops." }, 502],
    [{ code: 200, message: "Odd." }, 502],
    [{ type: "constructor", message: "Odd." }, 502],
    ["Oops.", 502],
  ])("%j has the status %i", (error, status) => {
    expect(toEmbeddedError(error, null)).toMatchObject({ kind: "status", status, upstreamMessage: expect.any(String) });
  });

  it("redacts its message", () => {
    expect(toEmbeddedError({ message: `Key ${API_KEY}` }, API_KEY).upstreamMessage).toBe("Key [redacted]");
  });
});
