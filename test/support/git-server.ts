/** Git's own HTTP server on a port of its own, with repositories that a test makes: what hosts of code answer. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** By path: the text of a file, or what else there is. A link's text is where it points to, a submodule's a commit. */
export type GitFileTree = Readonly<Record<string, string | Uint8Array | { readonly link: string } | { readonly submodule: string }>>;

export interface TestRepository {
  readonly url: string;
  /** Another commit of `main`, with these files and no others. Its 40 hexadecimal digits. */
  commit(files: GitFileTree): Promise<string>;
}

export interface GitServer {
  readonly origin: string;
  /** The requested paths, such as `GET /echo.git/info/refs?service=git-upload-pack`. */
  readonly requests: string[];
  /** Answers in git's place where it returns true. */
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean;
  create(name: string, files?: GitFileTree, config?: Readonly<Record<string, string>>): Promise<TestRepository>;
  close(): Promise<void>;
}

export async function startGitServer(): Promise<GitServer> {
  const root = await mkdtemp(join(tmpdir(), "sluice-git-"));
  const http = createServer((request, response) => {
    server.requests.push(`${request.method} ${request.url}`);
    if (!server.intercept(request, response)) serve(root, request, response);
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const server: GitServer = {
    origin,
    requests: [],
    intercept: () => false,
    create: async (name, files, config = {}) => {
      const directory = join(root, `${name}.git`);
      await run("git", ["init", "--quiet", "--bare", "--template=", "--initial-branch=main", directory]);
      for (const [key, value] of Object.entries(config)) await run("git", ["-C", directory, "config", key, value]);
      let last: string | null = null;
      const repository = {
        url: `${origin}/${name}.git`,
        commit: async (tree: GitFileTree) => {
          last = await commit(directory, tree, last);
          return last;
        },
      };
      if (files !== undefined) await repository.commit(files);
      return repository;
    },
    close: async () => {
      http.closeAllConnections();
      http.close();
      await once(http, "close");
      await rm(root, { recursive: true, force: true });
    },
  };
  return server;
}

/** Git's CGI program: its answer is headers, an empty line and a body. */
function serve(root: string, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? "/", "http://localhost");
  const git = spawn("git", ["http-backend"], {
    env: {
      PATH: process.env.PATH,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      GIT_CONFIG_NOSYSTEM: "1",
      REQUEST_METHOD: request.method,
      PATH_INFO: decodeURIComponent(url.pathname),
      QUERY_STRING: url.search.slice(1),
      CONTENT_TYPE: request.headers["content-type"] ?? "",
      REMOTE_ADDR: "127.0.0.1",
    },
    stdio: ["pipe", "pipe", "ignore"],
  });
  git.stdin.on("error", () => undefined);
  request.pipe(git.stdin);
  const parts: Buffer[] = [];
  git.stdout.on("data", (part: Buffer) => parts.push(part));
  git.once("close", () => {
    const bytes = Buffer.concat(parts);
    const end = bytes.indexOf("\r\n\r\n");
    const headers = bytes
      .toString("latin1", 0, end)
      .split("\r\n")
      .map((line): [string, string] => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon), line.slice(colon + 1).trim()];
      });
    const status = Number.parseInt(headers.find(([name]) => name === "Status")?.[1] ?? "200", 10);
    response.writeHead(status, Object.fromEntries(headers.filter(([name]) => name !== "Status")));
    response.end(bytes.subarray(end + 4));
  });
}

/** By one process, and without a work tree. */
async function commit(directory: string, files: GitFileTree, parent: string | null): Promise<string> {
  const from = parent === null ? "" : `from ${parent}\n`;
  const parts: (string | Uint8Array)[] = [
    `commit refs/heads/main\nmark :1\ncommitter Test <test@example.com> now\ndata 1\n.\n${from}deleteall\n`,
  ];
  for (const [path, file] of Object.entries(files)) {
    if (typeof file === "object" && "submodule" in file) parts.push(`M 160000 ${file.submodule} ${JSON.stringify(path)}\n`);
    else {
      const [mode, content] = typeof file === "object" && "link" in file ? ["120000", file.link] : ["100644", file];
      const bytes = Buffer.from(content);
      parts.push(`M ${mode} inline ${JSON.stringify(path)}\ndata ${bytes.length}\n`, bytes, "\n");
    }
  }
  const git = spawn("git", ["-C", directory, "fast-import", "--quiet", "--date-format=now"], { stdio: ["pipe", "pipe", "inherit"] });
  for (const part of parts) git.stdin.write(part);
  git.stdin.write("get-mark :1\n");
  git.stdin.end();
  let id = "";
  git.stdout.setEncoding("utf8").on("data", (text: string) => {
    id += text;
  });
  const [code] = (await once(git, "close")) as [number];
  if (code !== 0) throw new Error(`git fast-import ended with ${code}`);
  return id.trim();
}
