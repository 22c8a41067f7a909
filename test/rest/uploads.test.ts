/** Forms over a real socket: what handlers are given, and every way in which a form is refused. */
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { FORM_FIELD_BYTES_MAX, FORM_FIELD_NAME_BYTES_MAX, FORM_FIELDS_MAX } from "../../src/http/limits.js";
import { bodyOf, sendRaw, serve, type TestServer } from "./serve.js";

const FILE_BYTES_MAX = 1000;
const BYTES_MAX = 2 * 1024 * 1024;
const RULES = {
  files: { file: { countMax: 1 }, image: { countMax: 2, mayBeText: true } },
  fileBytesMax: FILE_BYTES_MAX,
  bytesMax: BYTES_MAX,
};

let server: TestServer;
let handled = 0;

beforeAll(async () => {
  const handler = (
    _ctx: unknown,
    { body, files }: { body: unknown; files: Readonly<Record<string, readonly { bytes: Uint8Array }[]>> },
  ) => {
    handled += 1;
    const shown = Object.entries(files).map(([name, list]) => [
      name,
      list.map((file) => ({ ...file, bytes: Buffer.from(file.bytes).toString() })),
    ]);
    return { body, files: Object.fromEntries(shown) };
  };
  const form = { ...RULES, fields: z.looseObject({ model: z.string().optional() }) };
  // No caller has a smaller limit.
  const somebody = { kind: "session", accountId: "a", isOperator: false, sessionId: "s" } as const;
  server = await serve(
    (route, endpoint) => {
      route("/form", { POST: endpoint({ id: null, form, handler }) });
      route("/either", { POST: endpoint({ id: null, form, body: z.looseObject({ model: z.string() }), handler }) });
    },
    { authenticate: () => somebody },
  );
});
afterAll(() => server.close());

interface Answered {
  readonly status: number;
  readonly body: { readonly error?: Record<string, unknown>; readonly [name: string]: unknown };
}

async function post(body: FormData | string, path = "/form", headers: Record<string, string> = {}): Promise<Answered> {
  const response = await fetch(server.baseUrl + path, { method: "POST", body, headers });
  return { status: response.status, body: (await response.json()) as Answered["body"] };
}

function form(fields: Record<string, string | Blob | readonly (string | Blob)[]>): FormData {
  const data = new FormData();
  for (const [name, values] of Object.entries(fields)) {
    for (const value of Array.isArray(values) ? values : [values]) {
      if (typeof value === "string") data.append(name, value);
      else data.append(name, value, "a.txt");
    }
  }
  return data;
}

function file(size: number): Blob {
  return new Blob(["x".repeat(size)], { type: "text/plain" });
}

describe("a form", () => {
  it("gives its texts and its files to the handler", async () => {
    const data = form({ model: "m", "list[]": ["a", "b"], "settings[kind]": "k", file: file(3), "image[]": [file(1), file(2)] });
    data.append("note", "ö…");

    const { status, body } = await post(data);

    expect(status).toBe(200);
    expect(body).toEqual({
      body: { model: "m", list: ["a", "b"], settings: { kind: "k" }, note: "ö…" },
      files: {
        file: [{ name: "a.txt", contentType: "text/plain", bytes: "xxx" }],
        image: [
          { name: "a.txt", contentType: "text/plain", bytes: "x" },
          { name: "a.txt", contentType: "text/plain", bytes: "xx" },
        ],
      },
    });
  });

  it.each([
    ["parts", "text", 1_000, `The form has more than ${FORM_FIELDS_MAX} fields.`],
    ["files", "file", 1_000, "image: takes at most 2 files"],
    ["nested names", "deep", 1, "a[b][c][d]: may be nested at most 2 levels deep"],
    ["items of a list", "far", 1, "a[64]: may have at most 64 items, numbered from 0"],
    ["bytes of a part's head", "head", 1, "The form is malformed: the head of a part is broken, or longer than 16384 bytes."],
  ])("states the allowed number of %s", async (_what, kind, count, message) => {
    const heads: Readonly<Record<string, (index: number) => string>> = {
      text: (index) => `name="f${index}"`,
      file: (index) => `name="image[]"; filename="${index}"`,
      deep: () => 'name="a[b][c][d]"',
      far: () => 'name="a[64]"',
      head: () => `name="a"\r\nX: ${"x".repeat(16 * 1024)}`,
    };
    const parts = Array.from(
      { length: count },
      (_, index) => `--b\r\nContent-Disposition: form-data; ${heads[kind]?.(index)}\r\n\r\nx\r\n`,
    );

    const answer = await post(`${parts.join("")}--b--\r\n`, "/form", { "content-type": "multipart/form-data; boundary=b" });

    expect(answer).toMatchObject({ status: 400, body: { error: { code: "BAD_REQUEST", message } } });
  });

  it("refuses a NUL in a text, and names its field", async () => {
    const data = form({ model: "m", "list[]": ["a", "b\0"], file: file(3) });

    expect(await post(data)).toMatchObject({
      status: 400,
      body: { error: { param: "list.1", message: "list.1: must not hold a NUL character" } },
    });
  });

  it("keeps of a file's name its last part, in UTF-8", async () => {
    const data = new FormData();
    data.append("file", file(1), "../../ä/ß.wav");

    expect((await post(data)).body.files).toMatchObject({ file: [{ name: "ß.wav" }] });
  });

  it("may be JSON where the route takes either", async () => {
    expect(await post(form({ model: "m" }), "/either")).toEqual({ status: 200, body: { body: { model: "m" }, files: {} } });
    expect(await post('{"model":"m"}', "/either", { "content-type": "application/json" })).toEqual({
      status: 200,
      body: { body: { model: "m" }, files: {} },
    });
  });

  it("takes text where a file's field may be text", async () => {
    expect((await post(form({ image: "https://example.org/a.png" }))).body.body).toEqual({ image: "https://example.org/a.png" });
  });

  it.each([
    ["a file at its bound", { file: file(FILE_BYTES_MAX) }],
    ["a text at its bound", { text: "x".repeat(FORM_FIELD_BYTES_MAX) }],
    ["a name at its bound", { ["n".repeat(FORM_FIELD_NAME_BYTES_MAX)]: "x" }],
    ["as many fields as there may be", Object.fromEntries(Array.from({ length: FORM_FIELDS_MAX }, (_, index) => [`f${index}`, "x"]))],
  ])("takes %s", async (_what, fields) => {
    expect((await post(form(fields))).status).toBe(200);
  });

  const refusals: readonly (readonly [what: string, fields: Parameters<typeof form>[0], status: number, param: string | null])[] = [
    ["a file past its bound", { file: file(FILE_BYTES_MAX + 1) }, 413, "file"],
    ["one of several files past its bound", { "image[]": [file(1), file(FILE_BYTES_MAX + 1)] }, 413, "image"],
    ["a text past its bound", { text: "x".repeat(FORM_FIELD_BYTES_MAX + 1) }, 400, "text"],
    ["a name past its bound", { ["n".repeat(FORM_FIELD_NAME_BYTES_MAX + 1)]: "x" }, 400, null],
    ["a field too many", Object.fromEntries(Array.from({ length: FORM_FIELDS_MAX + 1 }, (_, index) => [`f${index}`, "x"])), 400, null],
    ["a second file", { file: [file(1), file(1)] }, 400, "file"],
    ["a third image, however it is called", { image: [file(1), file(1)], "image[]": file(1) }, 400, "image"],
    ["a file in a field that takes none", { model: file(1) }, 400, "model"],
    ["a file under the name of an inherited property", { constructor: file(1) }, 400, "constructor"],
    ["text in a field that takes a file", { file: "text" }, 400, "file"],
    ["a list of texts in a field that takes a file", { "file[]": "text" }, 400, "file"],
    ["a text that is given twice", { model: ["a", "b"] }, 400, "model"],
    ["an unknown text that is given twice", { other: ["a", "b"] }, 400, "other"],
    ["a list where a text belongs", { "model[]": "a" }, 400, "model"],
    ["names nested too deep", { "a[b][c][d]": "x" }, 400, "a[b][c][d]"],
    ["a list with gaps", { "a[1000000]": "x" }, 400, "a[1000000]"],
  ];
  it.each(refusals)("is refused with %s", async (_what, fields, status, param) => {
    const before = handled;

    const answer = await post(form(fields));

    expect(answer.status).toBe(status);
    expect(answer.body.error).toMatchObject({ code: status === 413 ? "PAYLOAD_TOO_LARGE" : "BAD_REQUEST", param });
    expect(handled).toBe(before);
  });

  it("does not let a field change the prototype of objects", async () => {
    const { status } = await post(form({ "__proto__[polluted]": "x", "a[__proto__]": "y", "constructor[prototype]": "z" }));

    expect([200, 400]).toContain(status);
    expect("polluted" in {}).toBe(false);
  });

  it("is refused when it is JSON and only a form is taken", async () => {
    const { status, body } = await post("{}", "/form", { "content-type": "application/json" });

    expect(status).toBe(415);
    expect(body.error?.code).toBe("UNSUPPORTED_MEDIA_TYPE");
  });

  it("is refused when it is compressed", async () => {
    expect((await post(form({}), "/form", { "content-encoding": "gzip" })).status).toBe(415);
  });
});

const HEAD = "POST /form HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=b\r\n";
const FILE_HEAD = '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n';

describe("a broken form", () => {
  const broken: readonly (readonly [what: string, body: string])[] = [
    ["that is empty", ""],
    ["without its end", `${FILE_HEAD}abc`],
    ["cut in a part's head", '--b\r\nContent-Disposition: form-data; name="fi'],
    ["of something else", "nothing like a form"],
    ["with a part that has no name", "--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n"],
    ["with a head that is no head", "--b\r\n\x00\x01\r\n\r\nx\r\n--b--\r\n"],
  ];
  it.each(broken)("%s is 400", async (_what, body) => {
    const answer = bodyOf(await sendRaw(server.port, `${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`));

    expect(answer).toMatchObject({ status: 400, error: { code: "BAD_REQUEST" } });
  });

  it("without a boundary is 400", async () => {
    const head = "POST /form HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: multipart/form-data\r\nContent-Length: 1\r\n\r\nx";

    expect(bodyOf(await sendRaw(server.port, head))).toMatchObject({ status: 400 });
  });

  it("without any body is 400", async () => {
    expect(bodyOf(await sendRaw(server.port, `${HEAD}\r\n`))).toMatchObject({ status: 400 });
  });

  it("that says it is too long is refused before it is sent", async () => {
    const answer = bodyOf(await sendRaw(server.port, `${HEAD}Content-Length: ${BYTES_MAX + 1}\r\n\r\n`));

    expect(answer).toMatchObject({ status: 413, error: { code: "PAYLOAD_TOO_LARGE" } });
  });

  it("without end is refused as soon as a file in it is too long, and the connection closed", async () => {
    const chunk = `${FILE_HEAD}${"x".repeat(FILE_BYTES_MAX + 1)}`;

    const answer = await sendRaw(server.port, `${HEAD}Transfer-Encoding: chunked\r\n\r\n${chunk.length.toString(16)}\r\n${chunk}\r\n`);

    expect(bodyOf(answer)).toMatchObject({ status: 413, error: { param: "file" } });
  });

  it("with endless texts is refused when it is too long", async () => {
    const chunk = `--b\r\nContent-Disposition: form-data; name="a[]"\r\n\r\n${"x".repeat(200_000)}\r\n`;
    const pieces = Array.from({ length: 11 }, () => `${chunk.length.toString(16)}\r\n${chunk}\r\n`);

    const answer = await sendRaw(server.port, `${HEAD}Transfer-Encoding: chunked\r\n\r\n`, ...pieces);

    expect(bodyOf(answer)).toMatchObject({ status: 413 });
  });

  it("whose sender leaves reaches no handler, and the server goes on", async () => {
    const before = handled;
    const socket = connect(server.port, "127.0.0.1");
    await new Promise<void>((resolve) => {
      socket.write(`${HEAD}Content-Length: 500\r\n\r\n${FILE_HEAD}abc`, () => resolve());
    });
    socket.destroy();

    expect((await post(form({ model: "m" }))).status).toBe(200);
    expect(handled).toBe(before + 1);
    expect(server.logged.filter((line) => Number(line.level) >= 50)).toEqual([]);
  });
});
