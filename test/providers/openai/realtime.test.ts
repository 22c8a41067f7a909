import { describe, expect, it } from "vitest";
import { readRealtimeEvent, toRealtimeUsage } from "../../../src/providers/openai/realtime-events.js";
import { RealtimeMeter } from "../../../src/services/generation/realtime/meter.js";

function read(event: object) {
  return readRealtimeEvent(JSON.stringify(event));
}

describe("an upstream's realtime event", () => {
  it("reports each token in one kind, for any number of cached ones", () => {
    const usage = toRealtimeUsage({
      total_tokens: 600,
      input_tokens: 500,
      output_tokens: 100,
      input_token_details: {
        text_tokens: 100,
        audio_tokens: 300,
        image_tokens: 100,
        cached_tokens: 150,
        cached_tokens_details: { text_tokens: 50, audio_tokens: 60, image_tokens: 40 },
      },
      output_token_details: { text_tokens: 30, audio_tokens: 70 },
    });

    expect(usage).toMatchObject({
      inputTextTokens: 50,
      inputCachedTokens: 150,
      inputAudioTokens: 240,
      inputImageTokens: 60,
      outputTextTokens: 30,
      outputAudioTokens: 70,
    });
  });

  it("is trusted without details, and takes cached tokens from the text where their kind is missing", () => {
    expect(toRealtimeUsage({ input_tokens: 5, output_tokens: 7, total_tokens: 12 })).toMatchObject({
      inputTextTokens: 5,
      outputTextTokens: 7,
    });
    expect(
      toRealtimeUsage({ input_tokens: 9, output_tokens: 0, input_token_details: { text_tokens: 6, audio_tokens: 3, cached_tokens: 4 } }),
    ).toMatchObject({ inputTextTokens: 2, inputAudioTokens: 3, inputCachedTokens: 4 });
  });

  it.each([
    [undefined],
    [null],
    [{}],
    [{ input_tokens: -1, output_tokens: 1 }],
    [{ input_tokens: 1.5, output_tokens: 1 }],
    [{ input_tokens: "1", output_tokens: 1 }],
    [{ input_tokens: 1, output_tokens: 1, input_token_details: { audio_tokens: -1 } }],
  ])("is not trusted when it reports %j", (usage) => {
    expect(read({ type: "response.done", response: { usage } })).toEqual({ kind: "done", responseId: "", status: "", usage: null });
  });

  it.each([
    ["response.output_text.delta", { text: "AAAA", audioBytes: 0 }],
    ["response.text.delta", { text: "AAAA", audioBytes: 0 }],
    ["response.output_audio_transcript.delta", { text: "AAAA", audioBytes: 0 }],
    ["response.function_call_arguments.delta", { text: "AAAA", audioBytes: 0 }],
    ["response.output_audio.delta", { text: "", audioBytes: 3 }],
    ["response.audio.delta", { text: "", audioBytes: 3 }],
  ])("%s is a piece of an answer", (type, piece) => {
    expect(read({ type, delta: "AAAA" })).toEqual({ kind: "delta", responseId: "", ...piece });
  });

  it.each(["not json", "[]", "null", "{}", '{"type":7}', '{"type":"response.output_text.delta","delta":{}}', "[".repeat(100_000)])(
    "%.40s passes unread",
    (text) => {
      expect(readRealtimeEvent(text)).toEqual({ kind: "other" });
    },
  );
});

describe("the meter", () => {
  const meterOf = (...events: object[]) => {
    const meter = new RealtimeMeter();
    for (const event of events) meter.readUpstream(readRealtimeEvent(JSON.stringify(event)));
    return meter;
  };

  it("counts audio by its format: telephone audio has a sixth of the bytes", () => {
    const meter = meterOf(
      { type: "session.updated", session: { audio: { output: { format: { type: "audio/pcmu" } } } } },
      { type: "response.output_audio.delta", delta: Buffer.alloc(8_000).toString("base64") },
    );

    expect(meter.soFar()).toMatchObject({ source: "partial", quantities: { outputAudioTokens: 20 } });
  });

  it("resets its count of an answer when its report arrives", () => {
    const meter = meterOf(
      { type: "response.output_text.delta", delta: "Hello there" },
      { type: "response.done", response: { usage: { input_tokens: 3, output_tokens: 4 } } },
    );

    expect(meter.soFar()).toMatchObject({ source: "provider", quantities: { inputTextTokens: 3, outputTextTokens: 4 } });
  });
});
