import { describe, expect, it } from "vitest";
import { openSandbox, textCall } from "../../support/sandbox-media.js";

const { embedding } = openSandbox();

async function embed(inputs: readonly (string | readonly number[])[], dimensions: number | null = null): Promise<number[][]> {
  const { vectors } = await embedding.embed({ ...textCall(), inputs, dimensions });
  return vectors.map((vector) => (typeof vector === "string" ? [] : Array.from(vector)));
}

function cosine(one: readonly number[] = [], other: readonly number[] = []): number {
  return one.reduce((sum, value, index) => sum + value * (other[index] ?? 0), 0);
}

describe("sandbox embeddings", () => {
  it("have length 1 and 256 dimensions, or the requested number", async () => {
    for (const dimensions of [null, 1, 7, 1_536, 4_096]) {
      const [vector = []] = await embed(["A sentence about rivers"], dimensions);

      expect(vector).toHaveLength(dimensions ?? 256);
      expect(cosine(vector, vector)).toBeCloseTo(1, 5);
    }
  });

  it.each([
    ["The cat sat on the mat", "A cat is sitting on a mat", "Quarterly revenue exceeded all forecasts"],
    ["How do I reset my password?", "Password reset instructions", "Best hiking trails near the lake"],
    ["The painter paints a painting", "Painted by a famous painter", "Compile the kernel with debug symbols"],
    ["Train schedules from Berlin to Munich", "When does the Munich train leave Berlin?", "A recipe for tomato soup"],
    ["colour photographs of birds", "a bird photographer's colours", "insurance claim form"],
    ["データベースの設定", "データベースを設定する", "今日は天気がいい"],
    ["Обновление базы данных", "базу данных обновили", "Сегодня хорошая погода"],
  ])("put %j nearer to %j than to %j", async (text, related, unrelated) => {
    const [first, second, third] = await embed([text, related, unrelated]);

    expect(cosine(first, second)).toBeGreaterThan(0.3);
    expect(cosine(first, third)).toBeLessThan(0.25);
    expect(cosine(first, second) - cosine(first, third)).toBeGreaterThan(0.2);
  });

  it("are the same for the same text, beside any other texts", async () => {
    const [[alone], [, beside]] = await Promise.all([embed(["rivers"]), embed(["other", "rivers"])]);

    expect(beside).toEqual(alone);
  });

  it("differ for texts of symbols alone", async () => {
    const [dots, marks, empty] = await embed(["...", "?!", ""]);

    expect(cosine(dots, marks)).toBeLessThan(0.99);
    expect(cosine(empty, empty)).toBeCloseTo(1, 5);
  });

  it("take token numbers", async () => {
    const [one, same, other] = await embed([
      [1, 2, 3],
      [3, 2, 1],
      [77, 78, 79],
    ]);

    expect(cosine(one, same)).toBeCloseTo(1, 5);
    expect(cosine(one, other)).toBeLessThan(0.6);
  });

  it("report the tokens of all inputs, or the amount that the first text dictates", async () => {
    const usageOf = async (inputs: readonly (string | readonly number[])[]) =>
      (await embedding.embed({ ...textCall(), inputs, dimensions: null })).usage;

    expect(await usageOf(["hello world", "hello world"])).toMatchObject({ inputTextTokens: 4, outputTextTokens: 0 });
    expect(await usageOf([[1, 2, 3]])).toMatchObject({ inputTextTokens: 3 });
    expect(await usageOf(["[tokens in=1234] hello"])).toMatchObject({ inputTextTokens: 1_234 });
    expect(await usageOf(["[no usage] hello"])).toBeNull();
  });

  it("leave directives out of the vector, and obey them", async () => {
    const [[plain], [directed]] = await Promise.all([embed(["hello"]), embed(["[delay 5ms] hello"])]);

    expect(directed).toEqual(plain);
    await expect(embed(["[fail 418] hello"])).rejects.toMatchObject({ kind: "status", status: 418 });
  });

  it.each([0, 4_097, 1.5])("refuse %s dimensions", async (dimensions) => {
    await expect(embed(["x"], dimensions)).rejects.toMatchObject({ status: 400, upstreamParam: "dimensions" });
  });

  it("of long texts leave the event loop to others, and stop with their caller", async () => {
    let long = "";
    let vector: Float32Array | number[] = [];
    let turns = 0;
    // As long as several slices of time take on this processor.
    for (let words = 60_000; turns < 4 && words < 4_000_000; words *= 2) {
      long = Array.from({ length: words }, (_, index) => `word${(index * 7_919) % 10_007}`).join(" ");
      turns = 0;
      let isReading = true;
      const turn = () => {
        turns += 1;
        if (isReading) setImmediate(turn);
      };
      setImmediate(turn);
      [vector = []] = await embed([long]);
      isReading = false;
    }
    const controller = new AbortController();
    const leaving = controller.signal;
    setImmediate(() => controller.abort());

    expect(cosine(vector, vector)).toBeCloseTo(1, 5);
    expect(turns).toBeGreaterThanOrEqual(4);
    await expect(embedding.embed({ ...textCall(), signal: leaving, inputs: [long, long, long], dimensions: null })).rejects.toThrow();
  });
});
