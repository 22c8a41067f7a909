/** The outbound guard against the corpus of docs/spec/outbound.md#urls, DNS that lies, and servers that misbehave, all over real sockets. */
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isPublicAddress, OutboundError, OutboundGuard, type ResolvedAddress } from "../../src/lib/outbound-guard.js";
import { PRIVATE_URLS } from "../support/private-urls.js";

let server: Server;
let port: number;
let answer: RequestListener;
let connections = 0;
/** Nothing is allowed: a connection that succeeds is a hole. */
let strict: OutboundGuard;
/** The local server, by its name. */
let guard: OutboundGuard;

beforeAll(async () => {
  server = createServer((req, res) => answer(req, res));
  server.on("connection", () => {
    connections += 1;
  });
  server.listen(0);
  await once(server, "listening");
  port = (server.address() as AddressInfo).port;
  strict = new OutboundGuard({ allowHosts: [] });
  guard = new OutboundGuard({ allowHosts: ["LOCALHOST"] });
});
afterAll(async () => {
  await Promise.all([strict.close(), guard.close()]);
  server.closeAllConnections();
  server.close();
});

const signal = new AbortController().signal;
const options = { bytesMax: 1_000, timeoutMs: 20_000, accept: "image/*", signal };

function local(path = "/"): string {
  return `http://localhost:${port}${path}`;
}

/** A guard whose DNS answers these addresses, one list after the other; how often it was asked. */
function withDns(...answers: readonly (readonly string[])[]) {
  let asked = 0;
  const resolve = async (): Promise<readonly ResolvedAddress[]> => {
    const addresses = answers[Math.min(asked, answers.length - 1)] ?? [];
    asked += 1;
    return addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  };
  return { guard: new OutboundGuard({ allowHosts: [], resolve, connectTimeoutMs: 2_000 }), asked: () => asked };
}

async function problemOf(doing: Promise<unknown>): Promise<string> {
  const error = await doing.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(OutboundError);
  return (error as OutboundError).problem;
}

describe("a URL from a user", () => {
  for (const text of PRIVATE_URLS) {
    it(`is refused without a request: ${JSON.stringify(text.slice(0, 80))}`, async () => {
      const before = connections;
      const url = text.replace("PORT", String(port));

      expect(() => strict.parse(url)).toThrow(OutboundError);
      expect(await problemOf(strict.fetchGuarded(url, options))).toBe("url");
      expect(await problemOf(strict.check(url))).toBe("url");
      expect(connections).toBe(before);
    });
  }

  it.each([
    "https://example.com",
    "https://EXAMPLE.com:443/a%20c?d=e",
    "https://example.com:8443/",
    "https://xn--bcher-kva.example/",
    "https://bücher.example/a.png",
    "https://8.8.8.8/",
    "https://[2606:4700:4700::1111]/",
    `https://example.com/${"a".repeat(2_028)}`,
  ])("may be fetched: %s", (text) => {
    expect(strict.parse(text)).toBeInstanceOf(URL);
  });

  it("may be http, and at any address, on a host that the operator allows, and on no other", async () => {
    const allowing = new OutboundGuard({ allowHosts: ["10.0.0.1", "::1", "models.internal"] });

    for (const text of ["http://10.0.0.1:81/", "http://0xa000001/", "http://[0::1]:9/", "http://MODELS.internal/v1"]) {
      expect(allowing.parse(text)).toBeInstanceOf(URL);
    }
    for (const text of [
      "http://10.0.0.2/",
      "http://a.models.internal/",
      "http://user@10.0.0.1/",
      "http://10.0.0.1/#a",
      "ftp://10.0.0.1/",
    ]) {
      expect(() => allowing.parse(text)).toThrow(OutboundError);
    }
    await allowing.close();
  });
});

describe("a name", () => {
  const private_ = [
    "127.0.0.1",
    "10.1.2.3",
    "169.254.169.254",
    "100.64.0.1",
    "::1",
    "fd00::1",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
    "168.63.129.16",
  ];
  for (const address of private_) {
    it(`that resolves to ${address} is refused`, async () => {
      const before = connections;
      const { guard: lied } = withDns([address]);

      expect(await problemOf(lied.fetchGuarded(`https://private.example:${port}/`, options))).toBe("host");
      expect(await problemOf(lied.check(`https://private.example:${port}/`))).toBe("host");
      expect(connections).toBe(before);
      await lied.close();
    });
  }

  it("with one private address among public ones is refused", async () => {
    const { guard: mixed } = withDns(["93.184.216.34", "127.0.0.1"]);

    expect(await problemOf(mixed.check("https://mixed.example/"))).toBe("host");
    expect(await problemOf(mixed.fetchGuarded(`https://mixed.example:${port}/`, options))).toBe("host");
    await mixed.close();
  });

  it("that was public at the check and is private now is refused by the connection", async () => {
    const before = connections;
    const { guard: rebound, asked } = withDns(["93.184.216.34"], ["127.0.0.1"]);

    await rebound.check(`https://rebinding.example:${port}/`);
    expect(await problemOf(rebound.fetchGuarded(`https://rebinding.example:${port}/`, options))).toBe("host");

    expect(asked()).toBe(2);
    expect(connections).toBe(before);
    await rebound.close();
  });

  it("is resolved once for each connection: the checked address is the one dialled", async () => {
    // An address that is reserved for documentation would be refused; this one is public, and has no server that
    // answers within the time.
    const { guard: pinned, asked } = withDns(["192.0.3.1"], ["127.0.0.1"]);

    expect(await problemOf(pinned.fetchGuarded(`https://pinned.example:${port}/`, { ...options, timeoutMs: 1_000 }))).toMatch(
      /^(host|time)$/,
    );

    expect(asked()).toBe(1);
    await pinned.close();
  });

  it("that does not exist and one that is private get the same error", async () => {
    const { guard: unknown } = withDns([]);
    const { guard: inside } = withDns(["10.0.0.1"]);
    const tell = (from: OutboundGuard) => from.fetchGuarded("https://host.example/", options).catch((error: Error) => error.message);

    expect(await tell(unknown)).toBe(await tell(inside));
    await Promise.all([unknown.close(), inside.close()]);
  });
});

describe("the connector", () => {
  it("keeps an undici pool to public addresses, by name and by address alike", async () => {
    const { guard: lied } = withDns(["127.0.0.1"]);
    const before = connections;

    for (const origin of [
      `https://127.0.0.1:${port}`,
      `https://[::1]:${port}`,
      `https://named.example:${port}`,
      `http://named.example:${port}`,
    ]) {
      const pool = new Pool(origin, { connect: lied.connect });
      await expect(pool.request({ method: "GET", path: "/" })).rejects.toThrow(OutboundError);
      await pool.close();
    }
    expect(connections).toBe(before);
    await lied.close();
  });

  it("lets an allowed host through", async () => {
    answer = (_req, res) => res.end("hello");
    const pool = new Pool(`http://localhost:${port}`, { connect: guard.connect });

    const { body } = await pool.request({ method: "GET", path: "/" });

    expect(await body.text()).toBe("hello");
    await pool.close();
  });
});

describe("a fetched file", () => {
  it("keeps its type, and is requested without a caller's headers", async () => {
    let headers: object = {};
    answer = (req, res) => {
      headers = req.headers;
      res.writeHead(200, { "content-type": "Image/PNG; charset=x" }).end("bytes");
    };

    const file = await guard.fetchGuarded(local("/a?b=c"), options);

    expect(file).toEqual({ bytes: Buffer.from("bytes"), contentType: "image/png" });
    expect(headers).toEqual({
      host: `localhost:${port}`,
      connection: "keep-alive",
      accept: "image/*",
      "accept-encoding": "identity",
      "user-agent": "sluice",
    });
  });

  it("may have as many bytes as are allowed, declared or not, and not one more", async () => {
    for (const declares of [true, false]) {
      answer = (req, res) => {
        const body = Buffer.alloc(Number(req.url?.slice(1)));
        if (declares) res.setHeader("content-length", body.length);
        else res.write("");
        res.write(body.subarray(0, 10));
        res.end(body.subarray(10));
      };
      expect((await guard.fetchGuarded(local("/1000"), options)).bytes).toHaveLength(1_000);
      expect(await problemOf(guard.fetchGuarded(local("/1001"), options))).toBe("size");
    }
  });

  it("is not read further once it is too large", async () => {
    let isClosed: Promise<unknown> = Promise.resolve();
    answer = (_req, res) => {
      isClosed = once(res, "close");
      const pump = () => {
        while (!res.destroyed && res.write(Buffer.alloc(64 * 1024)));
        if (!res.destroyed) res.once("drain", pump);
      };
      pump();
    };

    expect(await problemOf(guard.fetchGuarded(local(), options))).toBe("size");
    await isClosed;
  });

  it.each([301, 302, 303, 307, 308])("is not redirected when the answer is %d", async (status) => {
    const asked: (string | undefined)[] = [];
    answer = (req, res) => {
      asked.push(req.url);
      res.writeHead(status, { location: local("/elsewhere") }).end();
    };

    expect(await problemOf(guard.fetchGuarded(local("/here"), options))).toBe("answer");
    expect(asked).toEqual(["/here"]);
  });

  it.each([204, 206, 404, 500])("is a failure with the status %d", async (status) => {
    answer = (_req, res) => res.writeHead(status).end();

    expect(await problemOf(guard.fetchGuarded(local(), options))).toBe("answer");
  });

  it("is not unpacked: a compressed answer is refused", async () => {
    answer = (_req, res) => res.writeHead(200, { "content-encoding": "gzip" }).end("x");

    expect(await problemOf(guard.fetchGuarded(local(), options))).toBe("answer");
  });

  it("must be whole", async () => {
    answer = (_req, res) => {
      res.writeHead(200, { "content-length": 100 });
      res.write("half", () => res.destroy());
    };

    expect(await problemOf(guard.fetchGuarded(local(), options))).toBe("host");
  });

  it("must arrive in time: headers, and every byte of a body that drips", async () => {
    answer = () => undefined;
    expect(await problemOf(guard.fetchGuarded(local(), { ...options, timeoutMs: 100 }))).toBe("time");

    answer = (_req, res) => {
      const dripping = setInterval(() => res.write("."), 10);
      res.on("close", () => clearInterval(dripping));
    };
    expect(await problemOf(guard.fetchGuarded(local(), { ...options, timeoutMs: 100 }))).toBe("time");
  });

  it("is given up when its caller leaves, with the caller's reason", async () => {
    const leaving = new AbortController();
    const gone = new Error("gone");
    answer = () => leaving.abort(gone);

    await expect(guard.fetchGuarded(local(), { ...options, signal: leaving.signal })).rejects.toBe(gone);
    await expect(guard.fetchGuarded(local(), { ...options, signal: leaving.signal })).rejects.toBe(gone);
  });

  it("may be at any address when an upstream of the operator's names it, but not endless or redirected", async () => {
    answer = (req, res) => (req.url === "/moved" ? res.writeHead(302, { location: "/" }).end() : res.end("made"));
    const url = `http://127.0.0.1:${port}`;

    expect((await strict.fetchGuarded(`${url}/a`, { ...options, isTrusted: true })).bytes).toEqual(Buffer.from("made"));
    expect(await problemOf(strict.fetchGuarded(`${url}/moved`, { ...options, isTrusted: true }))).toBe("answer");
    expect(await problemOf(strict.fetchGuarded(`${url}/a`, { ...options, isTrusted: true, bytesMax: 3 }))).toBe("size");
    expect(await problemOf(strict.fetchGuarded("file:///etc/passwd", { ...options, isTrusted: true }))).toBe("url");
  });
});

describe("a failure", () => {
  const failureOf = async (url: string, how = guard) => {
    const error = await how.fetchGuarded(url, options).catch((reason: unknown) => reason);
    return { isPassing: (error as OutboundError).isPassing, status: (error as OutboundError).status };
  };

  it("has the status of an answer, and may pass when a connection failed, not when it was refused", async () => {
    const { guard: refusing } = withDns(["127.0.0.1"]);
    answer = (_req, res) => res.writeHead(404).end();
    const missing = await failureOf(local());
    answer = (_req, res) => void res.destroy();
    const broken = await failureOf(local());

    expect([missing, broken]).toEqual([
      { isPassing: false, status: 404 },
      { isPassing: true, status: undefined },
    ]);
    expect(await failureOf(`https://private.example:${port}/`, refusing)).toEqual({ isPassing: false, status: undefined });
    await refusing.close();
  });
});

describe("an address", () => {
  it.each(["8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001:800::200e", "::ffff:8.8.8.8"])(
    "%s is public",
    (address) => {
      expect(isPublicAddress(address)).toBe(true);
    },
  );

  it.each(["", "example.com", "127.0.0.1", "999.1.1.1", "fe80::1%eth0", "::"])("%s is not", (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });
});
