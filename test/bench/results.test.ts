import { describe, expect, it } from "vitest";
import { completionDocument, streamDocument } from "../../bench/support/documents.js";
import { flushesBetween, parseFlushes } from "../../bench/support/flushes.js";
import { parseWrkReport, toWrkScript } from "../../bench/support/load.js";
import { format, median, medianRatio, percentile, toTable } from "../../bench/support/statistics.js";

describe("statistics", () => {
  it("takes the middle value, or the mean of the middle two", () => {
    expect(median([5, 1, 3])).toBe(3);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(median([])).toBeNaN();
  });

  it("interpolates percentiles between the closest ranks", () => {
    const values = Array.from({ length: 101 }, (_, index) => 100 - index);

    expect(percentile(values, 99)).toBe(99);
    expect(percentile([10, 20], 75)).toBe(17.5);
  });

  it("compares round by round, so that a machine at half speed leaves a ratio as it is", () => {
    expect(medianRatio([100, 50, 102], [200, 100, 204])).toBe(0.5);
    expect(medianRatio([100], [])).toBeNaN();
  });

  it("shows a dash for a missing figure", () => {
    expect(format(null)).toBe("-");
    expect(format(Number.NaN, 2)).toBe("-");
    expect(format(1234.5, 1)).toBe("1,234.5");
  });

  it("aligns a table as Markdown", () => {
    const table = toTable(["", "requests/s"], [["bare", "1,000"]]);

    expect(table).toBe(["|      | requests/s |", "| ---- | ---------: |", "| bare |      1,000 |"].join("\n"));
  });
});

describe("wrk", () => {
  it("reads the script's report, counting only 2xx answers as completed", () => {
    const report =
      '{"requests":1000,"microseconds":2000000,"p50":1500.0,"p99":9000.5,"status":10,"connect":0,"read":2,"write":0,"timeout":1}';

    const result = parseWrkReport(`Running 2s test\n  1000 requests in 2.00s\n\nreport: ${report}\n`);

    expect(result).toEqual({ completed: 990, seconds: 2, p50Ms: 1.5, p99Ms: 9.0005, failures: 13 });
  });

  it("fails when the script printed nothing", () => {
    expect(() => parseWrkReport("unable to connect")).toThrow("unable to connect");
  });

  it("quotes a body that would close a Lua string", () => {
    const script = toWrkScript({ url: "http://127.0.0.1", headers: { "x-a": "b" }, body: "a]=]b" });

    expect(script).toContain("wrk.body = [==[\na]=]b]==]");
    expect(script).toContain("wrk.headers[ [=[\nx-a]=] ] = [=[\nb]=]");
  });
});

describe("flushes", () => {
  const metrics = (count: number, seconds: number, operations: number) => `# TYPE sluice_settler_flush_duration_seconds histogram
sluice_settler_flush_duration_seconds_bucket{le="+Inf"} ${count}
sluice_settler_flush_duration_seconds_sum ${seconds}
sluice_settler_flush_duration_seconds_count ${count}
sluice_settler_flush_operations_sum ${operations}
`;

  it("are counted between two readings of the metrics", () => {
    const [before, after] = [parseFlushes(metrics(10, 0.5, 100)), parseFlushes(metrics(14, 0.75, 164))];

    expect(flushesBetween(before, after)).toEqual({ count: 4, seconds: 0.25, operations: 64 });
  });

  it("are unknown for a gateway without that metric", () => {
    expect(flushesBetween(parseFlushes(""), parseFlushes(metrics(1, 1, 1)))).toBeNull();
  });
});

describe("the documents", () => {
  it("streams the requested number of deltas, then a finish reason, usage and the end mark", () => {
    const { deltas, ending } = streamDocument(20);

    const chunks = [...deltas, ...ending.trimEnd().split("\n\n").slice(0, 2)].map((event) => JSON.parse(event.slice("data: ".length)));
    expect(deltas).toHaveLength(20);
    expect(chunks.at(-2).choices[0].finish_reason).toBe("stop");
    expect(chunks.at(-1).usage).toMatchObject({ prompt_tokens: 42, completion_tokens: 20, total_tokens: 62 });
    expect(ending.endsWith("data: [DONE]\n\n")).toBe(true);
    expect(JSON.parse(completionDocument()).usage).toMatchObject({ prompt_tokens: 42, completion_tokens: 40 });
  });
});
