/**
 * Where a request's processor time goes: Sluice on PostgreSQL under load, sampled by V8's profiler, told by file and by function.
 *
 *   npm run bench:profile
 *   npm run bench:profile -- --workload sse --connections 32 --seconds 10 --output /tmp/sluice.cpuprofile
 *
 * A share is of the samples in which the process was busy. What packages, native code and the kernel do is counted at the file of the
 * project that called it. Samples are of wall time: beside other work they count at a system call what the others took.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildPrograms, startSluice, startUpstream } from "./contenders.js";
import { WORKLOADS, type Workload } from "./support/documents.js";
import { chooseLoadGenerator } from "./support/load.js";
import { messagesRequest } from "./support/messages.js";
import { findPostgres, startPostgres } from "./support/postgres.js";
import { cpuMicroseconds, freePort } from "./support/process.js";
import { attribute, connectProfiler, printTables } from "./support/profiler.js";

const { values } = parseArgs({
  options: {
    workload: { type: "string", default: "json" },
    /** `messages`: Anthropic's format, passed to an upstream of that format; with the workloads json and sse. */
    face: { type: "string", default: "chat" },
    connections: { type: "string", default: "64" },
    seconds: { type: "string", default: "8" },
    /** Where the profile goes as a `.cpuprofile`, which browsers' tools open. */
    output: { type: "string" },
  },
});

const workload = WORKLOADS.find((name): name is Workload => name === values.workload);
if (workload === undefined) throw new Error(`--workload is one of ${WORKLOADS.join(", ")}.`);
const binaries = findPostgres();
if (binaries === null) throw new Error("PostgreSQL is not installed, and the profile is of Sluice on it.");

const directory = mkdtempSync(join(tmpdir(), "sluice-profile-"));
await buildPrograms();
const upstream = await startUpstream(directory, { chunks: 20, paceMs: 0, delayMs: 0 });
const postgres = await startPostgres(binaries);
try {
  const inspectorPort = await freePort();
  const sluice = await startSluice({
    ...{ directory, upstreamPort: upstream.port, databaseUrl: postgres.url() },
    environment: { NODE_OPTIONS: `--inspect=127.0.0.1:${inspectorPort}` },
  });
  const generator = await chooseLoadGenerator(directory);
  const chat = sluice.target(workload);
  const messages = { url: chat.url.replace("/v1/chat/completions", "/v1/messages"), body: messagesRequest(workload === "sse") };
  const target = values.face === "messages" ? { ...chat, ...messages } : chat;
  const connections = Number(values.connections);
  await generator.run(target, connections, 4);
  const profiler = await connectProfiler(inspectorPort);
  await profiler.start();
  const before = cpuMicroseconds(sluice.pid) ?? 0;
  const { completed, failures } = await generator.run(target, connections, Number(values.seconds));
  const used = (cpuMicroseconds(sluice.pid) ?? 0) - before;
  const profile = await profiler.stop();
  if (values.output !== undefined) writeFileSync(values.output, JSON.stringify(profile));
  console.log(`${completed} answers, ${failures} failures, ${Math.round(used / completed)} us of processor time each while sampled`);
  printTables(attribute(profile), used / completed);
  await sluice.shutDown();
} finally {
  await upstream.stop();
  await postgres.stop();
  rmSync(directory, { recursive: true, force: true });
}
