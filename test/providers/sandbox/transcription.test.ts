import { describe, expect, it } from "vitest";
import { SPEECH_FORMATS } from "../../../src/providers/media.js";
import { collect, musicCall, openSandbox, speechCall, transcriptionCall } from "../../support/sandbox-media.js";

const { speech, music, transcription } = openSandbox();
const TEXT = 'Hello, “world”. Straße, 你好, Привет & 100%! Twice: a = b; c <d> \\ "e".';

async function record(input: string, format: (typeof SPEECH_FORMATS)[number] = "mp3"): Promise<Uint8Array> {
  return collect((await speech.stream(speechCall({ input, format }))).chunks);
}

describe("sandbox transcription", () => {
  it.each(SPEECH_FORMATS.filter((format) => format !== "pcm"))("reads back every letter that sandbox speech said as %s", async (format) => {
    const answer = await transcription.transcribe(transcriptionCall(await record(TEXT, format)));

    expect(answer).toMatchObject({ text: TEXT, language: "en", segments: null, words: null, usage: null, warnings: [] });
    expect(answer.durationMs).toBeGreaterThan(2_000);
    expect(answer.durationMs).toBeLessThan(30_000);
  });

  it("reads back a text as long as speech takes", async () => {
    const long = "word ".repeat(2_000).trim();
    const { chunks } = await speech.stream(speechCall({ input: long, format: "opus", speed: 4 }));
    const head: Uint8Array[] = [];
    for await (const chunk of chunks) {
      head.push(chunk);
      if (head.length === 4) break;
    }

    expect((await transcription.transcribe(transcriptionCall(new Uint8Array(Buffer.concat(head))))).text).toBe(long);
  });

  it("puts segments and words in order over the length", async () => {
    const call = transcriptionCall(await record("First one here. And a second."), { wantsSegments: true, wantsWords: true });
    const { segments, words, durationMs } = await transcription.transcribe(call);

    expect(segments?.map(({ text }) => text)).toEqual(["First one here.", "And a second."]);
    expect(words?.map(({ text }) => text)).toEqual(["First", "one", "here.", "And", "a", "second."]);
    for (const parts of [segments ?? [], words ?? []]) {
      expect(parts[0]?.start).toBe(0);
      expect(parts.at(-1)?.end).toBeCloseTo((durationMs ?? 0) / 1_000, 3);
      expect(parts.every((part, index) => part.end > part.start && part.start === (parts[index - 1]?.end ?? 0))).toBe(true);
    }
  });

  it("says plainly that it cannot hear other recordings, and how long they are", async () => {
    const { bytes } = await music.generate(musicCall({ prompt: "x", seconds: 2, format: "wav" }));

    expect(await transcription.transcribe(transcriptionCall(bytes))).toMatchObject({
      text: "This is the Sluice sandbox: it transcribes only what sandbox speech has spoken, and this recording of 2.0 seconds is not its own.",
      durationMs: 2_000,
    });
  });

  it.each([
    ["nothing", new Uint8Array(0)],
    ["text", new TextEncoder().encode("<html>not a recording</html>".repeat(50))],
    ["noise", Uint8Array.from({ length: 5_000 }, (_, index) => (index * 7_919) % 251)],
    ["bare samples", new Uint8Array(2_000)],
  ])("refuses %s", async (_what, bytes) => {
    await expect(transcription.transcribe(transcriptionCall(bytes))).rejects.toMatchObject({
      kind: "status",
      status: 400,
      upstreamParam: "file",
    });
  });

  it("refuses or reads a recording that was cut off, and never hangs", async () => {
    const whole = await record("A sentence that is cut.", "flac");
    const cut = transcription.transcribe(transcriptionCall(whole.slice(0, 60)));

    await expect(cut).rejects.toMatchObject({ status: 400 });
  });

  it("obeys directives in the prompt field", async () => {
    const bytes = await record("Hello.");

    await expect(transcription.transcribe(transcriptionCall(bytes, { prompt: "[fail 500]" }))).rejects.toMatchObject({ status: 500 });
    expect((await transcription.transcribe(transcriptionCall(bytes, { prompt: "[echo] Dictated." }))).text).toBe("Dictated.");
    expect((await transcription.transcribe(transcriptionCall(bytes, { prompt: "[tokens in=9 out=4]" }))).usage).toMatchObject({
      inputTextTokens: 9,
      outputTextTokens: 4,
    });
  });
});
