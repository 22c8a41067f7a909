/** An S3 server of its own for a test file, which checks every signature: versitygw, from Go's packages. `.ci/run` installs it. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { homedir, tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import type { S3Settings } from "../../src/lib/settings.js";
import { continueProcess, stopProcess } from "./stopped-process.js";

export interface TestS3 {
  /** Where the server is. */
  readonly endpoint: string;
  /** A folder for each bucket, with a file for each object. */
  readonly directory: string;
  /** Makes one, and says how it is reached. */
  createBucket(): Promise<S3Settings>;
  /** Stops the process where it is: connections stand and are made, and nothing is answered, until `thaw`. */
  freeze(): void;
  thaw(): void;
  /** Stops it and removes its files. */
  stop(): Promise<void>;
}

/** What to say when `startS3` answers null. */
export const S3_ABSENT = "no versitygw in PATH: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0";
export const isS3Installed = findServer() !== null;

const CREDENTIALS = { accessKeyId: "tests", secretAccessKey: "secret-of-tests" };
const REGION = "us-east-1";
const START_TIMEOUT_MS = 30_000;

/** Null when the server is not installed. */
export async function startS3(): Promise<TestS3 | null> {
  const program = findServer();
  if (program === null) return null;
  const directory = mkdtempSync(join(tmpdir(), "sluice-s3-"));
  const port = await findFreePort();
  const { accessKeyId, secretAccessKey } = CREDENTIALS;
  const options = ["--port", `127.0.0.1:${port}`, "--access", accessKeyId, "--secret", secretAccessKey, "--quiet"];
  const server = spawn(program, [...options, "posix", directory], { stdio: "ignore" });
  const onExit = () => server.kill("SIGKILL");
  process.once("exit", onExit);
  const endpoint = `http://127.0.0.1:${port}`;
  await untilAnswering(endpoint, server);
  let buckets = 0;
  return {
    endpoint,
    directory,
    createBucket: async () => {
      buckets += 1;
      const bucket = `tests-${buckets}`;
      const client = new S3Client({ endpoint, region: REGION, credentials: CREDENTIALS, forcePathStyle: true });
      await client.send(new CreateBucketCommand({ Bucket: bucket }));
      client.destroy();
      return { bucket, endpoint, region: REGION, credentials: CREDENTIALS };
    },
    freeze: () => stopProcess(server.pid as number),
    thaw: () => continueProcess(server.pid as number),
    stop: async () => {
      process.off("exit", onExit);
      if (server.exitCode === null && server.signalCode === null) {
        const exited = once(server, "exit");
        server.kill("SIGKILL");
        await exited;
      }
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function findServer(): string | null {
  const folders = [...(process.env.PATH ?? "").split(delimiter), join(homedir(), "go", "bin")];
  const program = folders.map((folder) => join(folder, "versitygw")).find((path) => existsSync(path));
  if (program === undefined) return null;
  try {
    execFileSync(program, ["--version"], { stdio: "ignore" });
    return program;
  } catch {
    return null;
  }
}

async function untilAnswering(endpoint: string, server: ChildProcess): Promise<void> {
  for (const deadline = Date.now() + START_TIMEOUT_MS; Date.now() < deadline; ) {
    if (server.exitCode !== null) break;
    const answered = await fetch(endpoint).then(
      () => true,
      () => false,
    );
    if (answered) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`The S3 server at ${endpoint} did not start.`);
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("The system gave no port.");
  return address.port;
}
