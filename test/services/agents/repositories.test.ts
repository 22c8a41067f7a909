/** Repositories of code agents: fetched from a real git server through the outbound guard, and from servers that lie. */
import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import { deflateSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { OutboundGuard } from "../../../src/lib/outbound-guard.js";
import { AgentSources } from "../../../src/services/agents/agent-sources.js";
import { GitFiles } from "../../../src/services/agents/git-files.js";
import { readPack } from "../../../src/services/agents/git-pack.js";
import { fetchLatestCommit } from "../../../src/services/agents/git-remote.js";
import { AGENT_FILES_MAX, AGENT_SCRIPT_BYTES_MAX, REPOSITORIES_AT_ONCE_MAX } from "../../../src/services/agents/limits.js";
import {
  type DeployedCode,
  findDescription,
  identityOf,
  Repositories,
  type RepositoriesOptions,
} from "../../../src/services/agents/repositories.js";
import { type GitFileTree, type GitServer, startGitServer, type TestRepository } from "../../support/git-server.js";
import { PRIVATE_URLS } from "../../support/private-urls.js";

const AGENT = "export default ({ request }: { request: Request }) => Response.json({ url: request.url });\n";
const guard = new OutboundGuard({ allowHosts: ["127.0.0.1"] });
const BOUNDS = { objectsMax: 100, objectBytesMax: 60_000, unpackedBytesMax: 100_000 };
const never = new AbortController().signal;
let git: GitServer;
let repository: TestRepository;

beforeAll(async () => {
  git = await startGitServer();
  repository = await git.create("echo", { "agent.ts": AGENT });
});
beforeEach(() => {
  git.intercept = () => false;
  git.requests.length = 0;
});
afterAll(async () => {
  await git.close();
  await guard.close();
});

function deploy(url: string, options: RepositoriesOptions = {}): Promise<DeployedCode> {
  return new Repositories(guard, options).deploy(url, never);
}

/** The error for the person who names the repository; the repository is always the cause. */
async function refusal(url: string, options: RepositoriesOptions = {}, outbound = guard): Promise<string> {
  const error = await new Repositories(outbound, options).deploy(url, never).then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({ code: "BAD_REQUEST", param: "repository" });
  return (error as Error).message;
}

describe("a repository", () => {
  it("gives the latest commit's agent.ts with its imports, without types", async () => {
    const lines = Array.from({ length: 400 }, (_, index) => `line ${index} of a text that is much the same twice`);
    const sha = await repository.commit({
      "agent.ts":
        'import { greet } from "./lib/greet.js";\nimport type { Far } from "npm:far";\nexport default (far: Far) => greet(far);\n',
      "lib/greet.ts":
        'import one from "../data/one.json";\nimport { two } from "./two";\nexport const greet = (x: unknown): string => one[0] + two + x;\n',
      "lib/two/index.ts": 'import all from "../../data/two.json" with { type: "json" };\nexport const two: string = all.at(-1);\n',
      // Alike, so that the server sends one as a difference from the other.
      "data/one.json": JSON.stringify(["first", ...lines]),
      "data/two.json": JSON.stringify([...lines, "last"]),
      "unused.bin": new Uint8Array(100_000),
    });

    const code = await deploy(repository.url);

    expect(code).toMatchObject({ commitSha: sha, name: "echo", title: "echo", description: null });
    const module = (await import(`data:text/javascript,${encodeURIComponent(code.bundle)}`)) as { default: (far: string) => string };
    expect(module.default("!")).toBe("firstlast!");
    expect(git.requests).toEqual(["GET /echo.git/info/refs?service=git-upload-pack", "POST /echo.git/git-upload-pack"]);
  });

  it("may hold large files where its host leaves them out", async () => {
    const large = await git.create("large", undefined, { "uploadpack.allowFilter": "true" });
    const noise = Buffer.alloc(200_000, (Math.random() * 256) | 0).map((_, index) => (index * 7919) ^ (index >> 3));
    await large.commit({ "agent.ts": "export default 1;", "film.bin": noise });

    expect((await deploy(large.url, { packBytesMax: 10_000, unpackedBytesMax: 10_000 })).name).toBe("large");

    await large.commit({ "agent.ts": "import './big.js'; export default 1;", "big.js": " ".repeat(AGENT_SCRIPT_BYTES_MAX + 1) });
    expect(await refusal(large.url)).toBe("agent.ts:1: big.js has more than 65536 bytes.");
  });

  it("may import in a circle", async () => {
    await repository.commit({
      "agent.ts": 'import { other } from "./other.ts";\nexport const self = 1;\nexport default () => other();',
      "other.ts": 'import { self } from "./agent.ts";\nexport const other = () => self;',
    });

    expect((await deploy(repository.url)).bundle).toContain("other");
  });

  it.each([
    ["My%20Agent!.git", "My-Agent", "My Agent!"],
    [`${"n".repeat(130)}/`, "n".repeat(120), "n".repeat(42)],
    ["%E2%9C%A8star.v1.2%E2%9C%A8", "star.v1.2", "✨star.v1.2✨"],
  ])("called %s is an agent named %s", (path, name, title) => {
    expect(identityOf(new URL(`https://example.com/owner/${path}`))).toEqual({ name, title });
  });

  it("is described by its host, where the host says", async () => {
    const hosts = { [new URL(git.origin).host]: (path: string) => `${git.origin}/api/${path}` };
    let body = JSON.stringify({ description: `  Says\nhello. ${"x".repeat(1_000)}` });
    git.intercept = ({ url }, response) => {
      if (url !== "/api/echo") return false;
      response.end(body);
      return true;
    };
    const find = () => findDescription(guard, hosts, new URL(repository.url), never);

    expect((await deploy(repository.url, { hosts })).description).toBe(`Says hello. ${"x".repeat(1_000)}`.slice(0, 1_000));
    for (const [answer, description] of [
      ['{"description":null}', null],
      ['{"description":" \\n"}', null],
      ['{"description":7}', null],
      ["<html>", undefined],
      ["null", undefined],
    ] as const) {
      body = answer;
      expect([answer, await find()]).toEqual([answer, description]);
    }
    expect(await findDescription(guard, {}, new URL(repository.url), never)).toBeNull();
  });
});

describe("a repository without an agent that can be run", () => {
  const padded = (bytes: number) => `export default 1;${" ".repeat(bytes - 17)}`;
  const modules = (count: number): GitFileTree =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`m${index}.js`, `export default ${index};`]));
  const importing = (count: number) =>
    `${Array.from({ length: count }, (_, index) => `import "./m${index}.js";`).join("")}export default 1;`;

  it.each<[string, GitFileTree, string]>([
    ["no agent.ts", { "src/agent.ts": AGENT }, "The repository holds no file agent.ts at its root."],
    ["a folder", { "agent.ts/index.ts": AGENT }, "The repository holds no file agent.ts at its root."],
    ["one byte too many", { "agent.ts": padded(AGENT_SCRIPT_BYTES_MAX + 1) }, "agent.ts has more than 65536 bytes."],
    ["other bytes", { "agent.ts": new Uint8Array([0x2f, 0x2f, 0xff, 0xfe]) }, "agent.ts is not text in UTF-8."],
    ["a NUL", { "agent.ts": "// \0\nexport default 1;" }, "agent.ts is not text in UTF-8."],
    ["a link", { "agent.ts": { link: "real.ts" }, "real.ts": AGENT }, "agent.ts is a symbolic link, which is not followed."],
    ["a submodule", { "agent.ts": { submodule: "a".repeat(40) } }, "agent.ts is a submodule, which is not fetched."],
    ["no default export", { "agent.ts": "export const agent = 1;" }, "agent.ts has no default export."],
    ["bad syntax", { "agent.ts": "\nexport default {" }, "agent.ts:2: Expected identifier but found end of file"],
    ["more imported files than may be", { "agent.ts": importing(AGENT_FILES_MAX), ...modules(AGENT_FILES_MAX) }, "more than 100 files"],
    [
      "more imported bytes than may be",
      { "agent.ts": importing(8), ...Object.fromEntries(Object.keys(modules(8)).map((name) => [name, padded(AGENT_SCRIPT_BYTES_MAX)])) },
      "have more than 524288 bytes.",
    ],
    [
      "deep JSON",
      { "agent.ts": "import './a.json'; export default 1;", "a.json": `${"[".repeat(101)}${"]".repeat(101)}` },
      "is nested more than 100 levels deep",
    ],
  ])("has %s", async (_, files, message) => {
    await repository.commit(files);

    expect(await refusal(repository.url)).toContain(message);
  });

  it.each([
    [
      "import { z } from 'npm:zod';\nexport default z;",
      'agent.ts:1: "npm:zod" cannot be imported: only files of the repository can, by a relative path.',
    ],
    ["export default 1;\nawait import('node:fs');", 'agent.ts:2: "node:fs" cannot be imported'],
    ["export default require('fs');", 'agent.ts:1: "fs" cannot be imported'],
    // It makes the bundler take more memory than it may.
    [`export default ${"!".repeat(65_000)}1`, "agent.ts cannot be bundled."],
  ])("cannot be made one script: %#", async (text, message) => {
    await repository.commit({ "agent.ts": text });

    expect(await refusal(repository.url)).toContain(message);
  });

  it("takes as much as may be", async () => {
    const text = importing(AGENT_FILES_MAX - 1);
    await repository.commit({ "agent.ts": text + " ".repeat(AGENT_SCRIPT_BYTES_MAX - text.length), ...modules(AGENT_FILES_MAX - 1) });

    expect((await deploy(repository.url)).bundle).toContain("as default");
  });
});

describe("an import", () => {
  let sources: AgentSources;
  beforeAll(async () => {
    const sha = await repository.commit({
      "agent.ts": AGENT,
      "lib/a.ts": AGENT,
      "lib/b.js": AGENT,
      "link.ts": { link: "lib/a.ts" },
      linked: { link: "lib" },
      module: { submodule: "a".repeat(40) },
      "style.css": "a {}",
      "lib/index.ts": AGENT,
    });
    const { pack } = await fetchLatestCommit(guard, repository.url, { packBytesMax: 100_000 }, never);
    sources = new AgentSources(new GitFiles(await readPack(pack, BOUNDS, never), sha));
  });

  it.each([
    ["./lib/a.ts", "lib/a.ts"],
    ["./lib/a.js", "lib/a.ts"],
    ["./lib/a", "lib/a.ts"],
    ["./lib/b", "lib/b.js"],
    ["./lib", "lib/index.ts"],
    ["./lib/../lib/./a.ts", "lib/a.ts"],
  ])("of %s is of %s", (specifier, path) => {
    expect(sources.resolve(specifier, "agent.ts")).toBe(path);
  });

  it.each([
    ["zod", "only files of the repository can"],
    ["node:fs", "only files of the repository can"],
    ["jsr:@std/path", "only files of the repository can"],
    ["https://example.com/a.ts", "only files of the repository can"],
    ["data:text/javascript,1", "only files of the repository can"],
    ["/etc/passwd", "only files of the repository can"],
    ["file:///etc/passwd", "only files of the repository can"],
    ["..", "only files of the repository can"],
    ["../a.ts", "lies outside of the repository"],
    ["./missing.ts", "There is no file"],
    ["./lib/a.ts/b.ts", "There is no file"],
    ["./lib\\a.ts", "There is no file"],
    ["./linked/a.ts", "There is no file"],
    ["./style.css", "only .ts, .mts, .js, .mjs, .json can"],
    ["./module", "only .ts, .mts, .js, .mjs, .json can"],
  ])("of %s is refused", (specifier, message) => {
    expect(() => sources.resolve(specifier, "agent.ts")).toThrow(message);
  });

  it("follows no link", () => {
    expect(sources.resolve("./link", "agent.ts")).toBe("link.ts");
    expect(() => sources.load("link.ts")).toThrow("link.ts is a symbolic link, which is not followed.");
  });
});

describe("the host of a repository", () => {
  const answers = (status: number, headers: Record<string, string> = {}, body = "") => {
    git.intercept = (_, response) => {
      response.writeHead(status, headers).end(body);
      return true;
    };
  };
  const ADVERTISED = { "content-type": "application/x-git-upload-pack-advertisement" };
  const RESULT = { "content-type": "application/x-git-upload-pack-result" };
  const NOT_GIT = "The URL is not that of a git repository that can be fetched over HTTPS.";
  const UNKNOWN = "The repository's host is unknown, is not public, or does not answer.";
  /** Git's own answer about the commit, and this one instead of its pack. */
  const sends = (send: (response: ServerResponse) => void) => {
    git.intercept = ({ method }, response) => {
      if (method === "POST") send(response.writeHead(200, RESULT));
      return method === "POST";
    };
  };
  const band = (number: number, bytes: Uint8Array) => {
    const length = (bytes.length + 5).toString(16).padStart(4, "0");
    return Buffer.concat([Buffer.from(length), Buffer.from([number]), bytes]);
  };
  beforeAll(() => repository.commit({ "agent.ts": AGENT }));

  it.each([401, 403, 404, 410])("may answer %i: there is no public repository", async (status) => {
    answers(status, {}, "a secret of the host");

    expect(await refusal(repository.url)).toBe("There is no public repository at this URL.");
  });

  it.each<[string, number, Record<string, string>, string, string]>([
    ["is out of order", 500, {}, "a secret", "The repository's host answers with the status 500."],
    ["serves pages", 200, { "content-type": "text/html" }, "<html>", NOT_GIT],
    ["sends an encoding that was not requested", 200, { ...ADVERTISED, "content-encoding": "gzip" }, "", NOT_GIT],
    ["announces nothing", 200, ADVERTISED, "", NOT_GIT],
    ["announces another service", 200, ADVERTISED, "001f# service=git-receive-pack\n0000", NOT_GIT],
    ["counts wrongly", 200, ADVERTISED, "zzzz# service", "The repository's host does not speak git's protocol."],
    ["breaks off", 200, ADVERTISED, "001e# service=git", "The repository's host does not speak git's protocol."],
    ["has no commit", 200, ADVERTISED, advertisement(`${"0".repeat(40)} capabilities^{}\0side-band-64k`), "no commit"],
    ["has commits by SHA-256", 200, ADVERTISED, advertisement(`${"1".repeat(64)} HEAD\0side-band-64k`), "SHA-256"],
    ["cannot send in bands", 200, ADVERTISED, advertisement(`${"1".repeat(40)} HEAD\0ofs-delta`), NOT_GIT],
    ["never comes to the point", 200, ADVERTISED, `001e# service=git-upload-pack\n${"0000".repeat(100_000)}`, "more than 262144 bytes"],
  ])("that %s gives no repository", async (_, status, headers, body, message) => {
    answers(status, headers, body);

    expect(await refusal(repository.url)).toContain(message);
  });

  it("may redirect to where the repository is now", async () => {
    git.intercept = ({ url = "" }, response) => {
      if (!url.startsWith("/old/")) return false;
      response.writeHead(301, { location: url.replace("/old/echo", "/echo.git") }).end();
      return true;
    };

    expect(await deploy(`${git.origin}/old/echo`)).toMatchObject({ name: "echo" });
    expect(git.requests).toContain("POST /echo.git/git-upload-pack");
  });

  it.each([
    ["http://10.0.0.1/echo.git/info/refs?service=git-upload-pack", "The URL must be https."],
    ["https://169.254.169.254/info/refs?service=git-upload-pack", "is unknown, is not public, or does not answer"],
    ["https://user:password@example.com/echo.git/info/refs?service=git-upload-pack", "may not hold credentials"],
    ["/latest/meta-data", NOT_GIT],
    ["/round/info/refs?service=git-upload-pack", "The repository's host redirects too often."],
    ["", NOT_GIT],
  ])("may not redirect to %s", async (location, message) => {
    answers(302, location === "" ? {} : { location });

    expect(await refusal(repository.url)).toContain(message);
    expect(git.requests.length).toBeLessThanOrEqual(4);
  });

  it("may not redirect the request for a pack", async () => {
    git.intercept = ({ method }, response) => {
      if (method === "POST") response.writeHead(307, { location: "/other" }).end();
      return method === "POST";
    };

    expect(await refusal(repository.url)).toBe("The repository's host answers with the status 307.");
  });

  it.each<[string, (response: ServerResponse) => void, string]>([
    ["breaks the connection", (response) => response.destroy(), UNKNOWN],
    ["ends before the pack", (response) => response.end("0008NAK\n"), "a pack that is not well-formed"],
    [
      "sends an error",
      (response) => response.end(Buffer.concat([Buffer.from("0008NAK\n"), band(3, Buffer.from("a secret"))])),
      "could not send",
    ],
    ["refuses", (response) => response.end("0010ERR a secret"), NOT_GIT],
    [
      "sends something else",
      (response) => response.end(Buffer.concat([Buffer.from("0008NAK\n"), band(1, Buffer.alloc(64))])),
      "not well-formed",
    ],
    [
      "sends another commit's pack",
      (response) => response.end(Buffer.concat([Buffer.from("0008NAK\n"), band(1, packOf(object(3, "text"))), Buffer.from("0000")])),
      "a commit that is not whole",
    ],
    [
      "never ends",
      (response) => {
        response.write("0008NAK\n");
        const progress = band(2, Buffer.alloc(60_000));
        const more = () => {
          while (response.write(progress));
          response.once("drain", more);
        };
        more();
      },
      "sends more than 1000000 bytes.",
    ],
  ])("that %s gives no repository", async (_, send, message) => {
    sends(send);

    expect(await refusal(repository.url, { packBytesMax: 1_000_000 })).toContain(message);
  });

  it.each([
    ["a pack", { packBytesMax: 100 }, "sends more than 100 bytes."],
    ["a number of objects", { objectsMax: 2 }, "holds more than 2 files and folders."],
    ["a size", { unpackedBytesMax: 300 }, "holds more than 300 bytes."],
    ["a file", { objectBytesMax: 50 }, "holds a file of more than 50 bytes."],
  ])("may send %s within bounds alone", async (_, options, message) => {
    expect(await refusal(repository.url, options)).toContain(message);
  });

  it.each([
    ["nothing", () => undefined],
    ["headers", (response: ServerResponse) => response.writeHead(200, ADVERTISED).flushHeaders()],
    ["a part", (response: ServerResponse) => response.writeHead(200, ADVERTISED).write("001e# service")],
  ])("that sends %s and hangs is left in time", async (_, begin) => {
    git.intercept = (_request, response) => {
      begin(response);
      return true;
    };

    expect(await refusal(repository.url, { timeoutMs: 200 })).toBe("The repository's host did not give it within 200 ms.");
  });

  it("is closed when the caller has gone, and only a bounded number is fetched at once", async () => {
    git.intercept = () => true;
    const leaving = new AbortController();
    const repositories = new Repositories(guard);
    const waiting = Array.from({ length: REPOSITORIES_AT_ONCE_MAX }, () => repositories.deploy(repository.url, leaving.signal));

    await expect(repositories.deploy(repository.url, never)).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    leaving.abort(new Error("gone"));

    for (const { status, reason } of (await Promise.allSettled(waiting)) as PromiseRejectedResult[]) {
      expect([status, reason.message]).toEqual(["rejected", "gone"]);
    }
    git.intercept = () => false;
    expect((await repositories.deploy(repository.url, never)).name).toBe("echo");
  });

  it("gets no request for a forbidden URL", async () => {
    const strict = new OutboundGuard({ allowHosts: [], resolve: async () => [{ address: "10.0.0.1", family: 4 }] });
    const { port } = new URL(git.origin);
    const urls = [
      ...PRIVATE_URLS.map((url) => `${url.replace("PORT", port).replace(/\/$/, "")}/owner/name`),
      "http://93.184.216.34/owner/name",
      "https://github.com/owner/name?ref=main",
      "https://github.com/owner/name?",
      "https://github.com/owner/name#readme",
      "https://user:password@github.com/owner/name",
      "https://github.com:22/owner/name",
      "https://github.com/",
      "https://github.com/%20/",
      "git@github.com:owner/name.git",
      "ssh://git@github.com/owner/name.git",
      "git://github.com/owner/name.git",
      "file:///etc",
      "data:text/plain,x",
      "https://private.example.com/owner/name",
      `https://github.com/${"a".repeat(2_100)}`,
    ];

    for (const url of urls) expect([url, await refusal(url, {}, strict)]).toEqual([url, expect.stringMatching(/\.$/)]);

    expect(git.requests).toEqual([]);
    await strict.close();
  });
});

describe("a pack", () => {
  const TREE = object(2, "");

  it("may state an object as the difference from a later one", async () => {
    const base = Buffer.from("some text");
    const delta = Buffer.concat([sizes(base.length, 14), Buffer.from([0x90, 9, 5]), Buffer.from(" more")]);
    const pack = packOf(referenceDelta(base, delta), object(3, base));

    const objects = await readPack(pack, BOUNDS, never);

    expect([...objects.values()].map(({ bytes }) => bytes.toString()).sort()).toEqual(["some text", "some text more"]);
  });

  it.each<[string, Buffer]>([
    ["is none", Buffer.alloc(100)],
    ["has another version", Buffer.from(packOf(TREE)).fill(3, 7, 8)],
    ["ends early", packOf(object(3, "x".repeat(500))).subarray(0, -25)],
    ["holds fewer objects than it says", declared(2, TREE)],
    ["holds more objects than it says", declared(1, TREE, TREE)],
    ["has an object longer than it says", packOf(object(3, "x".repeat(1_000), 10))],
    ["has an object shorter than it says", packOf(object(3, "x", 10))],
    ["has an object that cannot be unpacked", packOf(Buffer.from([0x31, 1, 2, 3]))],
    ["has an object of no type", packOf(object(5, "x"))],
    ["lacks what a difference is from", packOf(referenceDelta(Buffer.from("other"), sizes(5, 0)))],
    ["has a difference from before its beginning", packOf(Buffer.concat([Buffer.from([0x62, 0x7f]), deflateSync(sizes(1, 1))]))],
    ["has a difference from another size", difference(sizes(5, 4), [0x90, 4])],
    ["copies from beyond the end", difference(sizes(4, 8), [0x90, 8])],
    ["makes more than it says", difference(sizes(4, 2), [0x90, 4])],
    ["makes less than it says", difference(sizes(4, 8), [0x90, 4])],
    ["holds an instruction that does nothing", difference(sizes(4, 4), [0, 0x90, 4])],
    ["cuts an instruction off", difference(sizes(4, 4), [0xff])],
    ["inserts more than there is", difference(sizes(4, 9), [9, 1])],
  ])("that %s is refused", async (_, pack) => {
    await expect(readPack(pack, BOUNDS, never)).rejects.toThrow("not well-formed");
  });

  it.each<[string, Buffer]>([
    ["says so", packOf(object(3, "x", 2 ** 40))],
    ["makes it from a few bytes", difference(sizes(4, 2 ** 32), [0x90, 4])],
    ["holds it", packOf(object(3, "x".repeat(BOUNDS.objectBytesMax + 1)))],
  ])("with an object larger than may be is not unpacked when it %s", async (_, pack) => {
    await expect(readPack(pack, BOUNDS, never)).rejects.toThrow(`a file of more than ${BOUNDS.objectBytesMax} bytes`);
  });

  it("is unpacked as far as all of it may go", async () => {
    const first = object(3, "x".repeat(BOUNDS.objectBytesMax));
    const left = BOUNDS.unpackedBytesMax - BOUNDS.objectBytesMax;

    expect((await readPack(packOf(first, object(3, "y".repeat(left))), BOUNDS, never)).size).toBe(2);
    await expect(readPack(packOf(first, object(3, "y".repeat(left + 1))), BOUNDS, never)).rejects.toThrow("more than 100000 bytes");
  });

  it("of more objects than it may hold is not read", async () => {
    await expect(readPack(declared(2 ** 32 - 1, TREE), BOUNDS, never)).rejects.toThrow("more than 100 files and folders");
  });
});

/** The objects that the server lists for this reference. */
function advertisement(line: string): string {
  return `001e# service=git-upload-pack\n0000${(line.length + 4).toString(16).padStart(4, "0")}${line}`;
}

/** One object of a pack, of a number that stands for its type; it may declare another size than it has. */
function object(type: number, content: string | Uint8Array, size = content.length): Buffer {
  return Buffer.concat([header(type, size), deflateSync(content)]);
}

function header(type: number, size: number): Buffer {
  const rest = Math.floor(size / 16);
  return Buffer.concat([Buffer.from([(rest > 0 ? 128 : 0) | (type << 4) | (size % 16)]), rest > 0 ? groups(rest) : Buffer.alloc(0)]);
}

function referenceDelta(base: Buffer, delta: Buffer): Buffer {
  const id = createHash("sha1").update(`blob ${base.length}\0`).update(base).digest();
  return Buffer.concat([header(7, delta.length), id, deflateSync(delta)]);
}

/** The text `base` and its difference to another, by these instructions. */
function difference(both: Buffer, instructions: readonly number[]): Buffer {
  const delta = Buffer.concat([both, Buffer.from(instructions)]);
  const base = object(3, "base");
  return packOf(base, Buffer.concat([header(6, delta.length), Buffer.from([base.length]), deflateSync(delta)]));
}

function sizes(source: number, target: number): Buffer {
  return Buffer.concat([groups(source), groups(target)]);
}

/** In groups of seven bits, the lowest first. */
function groups(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    bytes.push((rest % 128) | (rest >= 128 ? 128 : 0));
    if (rest < 128) return Buffer.from(bytes);
  }
}

function packOf(...objects: readonly Buffer[]): Buffer {
  return declared(objects.length, ...objects);
}

function declared(count: number, ...objects: readonly Buffer[]): Buffer {
  const start = Buffer.from("PACK\0\0\0\x02\0\0\0\0", "latin1");
  start.writeUInt32BE(count, 8);
  const body = Buffer.concat([start, ...objects]);
  return Buffer.concat([body, createHash("sha1").update(body).digest()]);
}
