/** Closed-loop load: wrk where it is installed, else autocannon. Both keep `connections` requests under way all the time. */
import { execFile, execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

export interface Target {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface LoadResult {
  /** Whole answers received. */
  readonly completed: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Answers that were not 2xx, broken connections and time-outs. */
  readonly failures: number;
}

export interface LoadGenerator {
  readonly name: string;
  run(target: Target, connections: number, seconds: number): Promise<LoadResult>;
}

/** Scripts that wrk needs are written to `directory`. */
export async function chooseLoadGenerator(directory: string): Promise<LoadGenerator> {
  if (isWrkInstalled()) return { name: "wrk", run: (target, connections, seconds) => runWrk(directory, target, connections, seconds) };
  const { default: autocannon } = await import("autocannon");
  return {
    name: "autocannon (wrk is not installed; it takes more CPU and so lowers every figure)",
    run: async (target, connections, seconds) => {
      const result = await autocannon({ ...target, method: "POST", connections, duration: seconds });
      const failures = result.non2xx + result.errors + result.timeouts;
      return { completed: result["2xx"], seconds: result.duration, p50Ms: result.latency.p50, p99Ms: result.latency.p99, failures };
    },
  };
}

function isWrkInstalled(): boolean {
  try {
    execFileSync("wrk", ["--version"], { stdio: "ignore" });
    return true;
  } catch (error) {
    // wrk prints its version and ends with status 1; only a missing program has no status.
    return error instanceof Error && "status" in error && typeof error.status === "number";
  }
}

async function runWrk(directory: string, target: Target, connections: number, seconds: number): Promise<LoadResult> {
  const script = join(directory, "load.lua");
  writeFileSync(script, toWrkScript(target));
  const args = ["-t1", `-c${connections}`, `-d${seconds}s`, "--timeout", "30s", "-s", script, target.url];
  const { stdout } = await promisify(execFile)("wrk", args);
  return parseWrkReport(stdout);
}

const REPORT_MARK = "report: ";

/** A wrk script that posts the target's body and ends with one line of JSON, which `parseWrkReport` reads. */
export function toWrkScript(target: Target): string {
  const headers = Object.entries(target.headers).map(([name, value]) => `wrk.headers[ ${toLuaString(name)} ] = ${toLuaString(value)}`);
  return `wrk.method = "POST"
${headers.join("\n")}
wrk.body = ${toLuaString(target.body)}

done = function(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\\n${REPORT_MARK}{"requests":%d,"microseconds":%d,"p50":%.1f,"p99":%.1f,"status":%d,"connect":%d,"read":%d,"write":%d,"timeout":%d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect, errors.read, errors.write, errors.timeout))
end
`;
}

interface WrkReport {
  readonly requests: number;
  readonly microseconds: number;
  readonly p50: number;
  readonly p99: number;
  readonly status: number;
  readonly connect: number;
  readonly read: number;
  readonly write: number;
  readonly timeout: number;
}

/** Reads the line that the script's `done` wrote. wrk counts answers that are not 2xx among its requests. */
export function parseWrkReport(output: string): LoadResult {
  const line = output.split("\n").find((each) => each.startsWith(REPORT_MARK));
  if (line === undefined) throw new Error(`wrk printed no report:\n${output}`);
  const report = JSON.parse(line.slice(REPORT_MARK.length)) as WrkReport;
  return {
    completed: report.requests - report.status,
    seconds: report.microseconds / 1e6,
    p50Ms: report.p50 / 1e3,
    p99Ms: report.p99 / 1e3,
    failures: report.status + report.connect + report.read + report.write + report.timeout,
  };
}

/** A Lua long-bracket string at a level that the text does not close. Lua drops a newline that follows the opening. */
function toLuaString(text: string): string {
  let level = "=";
  while (text.includes(`]${level}]`)) level += "=";
  return `[${level}[\n${text}]${level}]`;
}
