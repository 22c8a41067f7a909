import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isRegistered, parseRedirectUrl, redirectUrls, withQuery } from "../../../src/services/api-keys/redirect-url.js";

const parse = (text: string) => parseRedirectUrl(text, "redirect_url");

const HOSTILE = [
  ["", "whole"],
  ["javascript:alert(1)", "whole"],
  ["JavaScript:alert(1)", "whole"],
  ["java\nscript:alert(1)", "character"],
  ["data:text/html,<script>alert(1)</script>", "character"],
  ["data:text/html;base64,PHNjcmlwdD4=", "whole"],
  ["vbscript:msgbox(1)", "whole"],
  ["file:///etc/passwd", "whole"],
  ["ftp://app.example/", "whole"],
  ["blob:https://app.example/1", "whole"],
  ["myapp://callback", "whole"],
  ["com.example.app:/callback", "whole"],
  ["//evil.example", "whole"],
  ["/callback", "whole"],
  ["app.example/callback", "whole"],
  ["https:app.example", "whole"],
  ["https:/app.example", "whole"],
  ["https:///app.example", "whole"],
  ["https://", "whole"],
  ["https://?x", "whole"],
  ["https:\\\\evil.example", "character"],
  ["https://app.example\\@evil.example", "character"],
  ["https://app.example\\.evil.example", "character"],
  ["https://good.example@evil.example/", "name or password"],
  ["https://user:password@app.example/", "name or password"],
  ["https://@app.example/", "name or password"],
  ["https://good.example%40evil.example/", "whole"],
  ["https://good%2Eexample/", "host"],
  ["https://app.example/#", "fragment"],
  ["https://app.example/#api_key=x", "fragment"],
  ["https://app.example/cb#?x", "fragment"],
  [" https://app.example/", "character"],
  ["https://app.example/ ", "character"],
  ["https://app.example/a b", "character"],
  ["https://app.example/\r\nSet-Cookie:x=1", "character"],
  ["https://app.example/\u0000", "character"],
  ["https://app.example/\t", "character"],
  ["ht\ttps://app.example/", "character"],
  ["https://app.example/\u007f", "character"],
  ["https://bücher.example/", "character"],
  ["https://аpp.example/", "character"],
  ["https://app。example/", "character"],
  ["https://app.example/\u202e", "character"],
  ['https://app.example/"onclick="x', "character"],
  ["HTTPS://app.example/", "whole"],
  ["https://App.Example/", "host"],
  ["https://app.example:443x/", "whole"],
  ["https://app.example:/", "host"],
  ["https://app.example:0443/", "host"],
  ["https://app.example:99999/", "whole"],
  ["https://0x7f.1/", "host"],
  ["https://2130706433/", "host"],
  ["http://127.1/", "host"],
  ["http://0177.0.0.1/", "host"],
  ["http://app.example/", "https"],
  ["http://localhost.evil.example/", "https"],
  ["http://localhost./", "https"],
  ["http://127.0.0.1.evil.example/", "https"],
  ["http://128.0.0.1/", "https"],
  ["http://0.0.0.0/", "https"],
  ["http://10.0.0.1/", "https"],
  ["http://[::2]/", "https"],
  ["http://[::ffff:127.0.0.1]/", "host"],
  ["http://[0:0:0:0:0:0:0:1]/", "host"],
  [`https://app.example/${"a".repeat(2_029)}`, "2048"],
] as const;

const GOOD = [
  ["https://app.example", "https://app.example", "app.example", false],
  ["https://app.example/cb", "https://app.example", "app.example", false],
  ["https://app.example:443/cb", "https://app.example", "app.example", false],
  ["https://app.example:8443/cb?next=%2Fhome&x=1", "https://app.example:8443", "app.example:8443", false],
  ["https://app.example?x=1", "https://app.example", "app.example", false],
  ["https://xn--bcher-kva.example/", "https://xn--bcher-kva.example", "xn--bcher-kva.example", false],
  ["https://app.example/a/../b;v=1/(x)", "https://app.example", "app.example", false],
  ["http://localhost/", "http://localhost", "localhost", true],
  ["http://localhost:5173/cb", "http://localhost:5173", "localhost:5173", true],
  ["http://127.0.0.1:80/cb", "http://127.0.0.1", "127.0.0.1", true],
  ["http://127.200.3.4:9/cb", "http://127.200.3.4:9", "127.200.3.4:9", true],
  ["http://[::1]:8000/cb", "http://[::1]:8000", "[::1]:8000", true],
  ["https://localhost:8443/cb", "https://localhost:8443", "localhost:8443", true],
  [`https://app.example/${"a".repeat(2_028)}`, "https://app.example", "app.example", false],
] as const;

describe("a redirect URL", () => {
  it.each(HOSTILE)("is refused: %j", (text, why) => {
    expect(() => parse(text)).toThrow(
      expect.objectContaining({ code: "BAD_REQUEST", param: "redirect_url", message: expect.stringContaining(why) }),
    );
  });

  it.each(GOOD)("is taken as it is written: %s", (text, origin, host, isLoopback) => {
    expect(parse(text)).toEqual({ text, origin, host, isLoopback });
  });

  it("is answered beside a query that begins with a question mark of its own", () => {
    expect(withQuery("https://localhost??", "code=1")).toBe("https://localhost??&code=1");
    expect(withQuery("https://localhost?", "code=1")).toBe("https://localhost?code=1");
  });

  it("is never read otherwise by a browser than by us", () => {
    const pieces = fc.constantFrom(
      "https://",
      "http://",
      "//",
      "/",
      "\\",
      "@",
      ":",
      "#",
      "?",
      "%40",
      "%2f",
      "app.example",
      "localhost",
      "127.0.0.1",
      "[::1]",
      "evil",
      ".",
      "443",
      " ",
      "\t",
      "é",
    );
    fc.assert(
      fc.property(fc.array(pieces, { minLength: 1, maxLength: 9 }), (parts) => {
        let parsed: ReturnType<typeof parse>;
        try {
          parsed = parse(parts.join(""));
        } catch {
          return;
        }
        const url = new URL(parsed.text);
        expect(url.origin).toBe(parsed.origin);
        expect(url.username + url.password + url.hash).toBe("");
        expect(url.protocol === "https:" || parsed.isLoopback).toBe(true);
        const answered = new URL(withQuery(parsed.text, "code=1"));
        expect(answered.origin).toBe(parsed.origin);
        expect(answered.searchParams.getAll("code")).toEqual(["1"]);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("an app's registered addresses", () => {
  const isOneOf = (registered: string[], asked: string) => isRegistered(registered, parse(asked));

  it("match exactly", () => {
    const registered = ["https://app.example/cb", "https://app.example/other?x=1"];

    expect(isOneOf(registered, "https://app.example/cb")).toBe(true);
    expect(isOneOf(registered, "https://app.example/other?x=1")).toBe(true);
    for (const asked of [
      "https://app.example/cb/",
      "https://app.example/cb?x",
      "https://app.example/c",
      "https://app.example/CB",
      "https://app.example/cb/../evil",
      "https://app.example/%63b",
      "https://app.example:443/cb",
      "https://app.example:8443/cb",
      "https://sub.app.example/cb",
      "https://app.example.evil.example/cb",
      "https://app.example/other",
    ]) {
      expect(isOneOf(registered, asked), asked).toBe(false);
    }
  });

  it("match with any port on a loopback address, and with the same path", () => {
    const registered = ["http://127.0.0.1/cb", "http://localhost:3000/cb", "http://[::1]:1/cb"];

    expect(isOneOf(registered, "http://127.0.0.1:51234/cb")).toBe(true);
    expect(isOneOf(registered, "http://localhost:8080/cb")).toBe(true);
    expect(isOneOf(registered, "http://localhost/cb")).toBe(true);
    expect(isOneOf(registered, "http://[::1]:65535/cb")).toBe(true);
    expect(isOneOf(registered, "http://127.0.0.1:51234/cb2")).toBe(false);
    expect(isOneOf(registered, "https://localhost:3000/cb")).toBe(false);
    expect(isOneOf(registered, "http://127.0.0.2/cb")).toBe(false);
  });

  it("are at most ten, each as good as any", () => {
    const many = (count: number) => Array.from({ length: count }, (_, index) => `https://app.example/${index}`);

    expect(redirectUrls.safeParse(many(10)).success).toBe(true);
    expect(redirectUrls.safeParse(many(11)).success).toBe(false);
    expect(redirectUrls.safeParse(["https://app.example/", "javascript:alert(1)"]).success).toBe(false);
    expect(redirectUrls.parse(["https://app.example/", "https://app.example/"])).toEqual(["https://app.example/"]);
  });
});

describe("parameters", () => {
  it.each([
    ["https://app.example", "https://app.example?code=1"],
    ["https://app.example/cb", "https://app.example/cb?code=1"],
    ["https://app.example/cb?", "https://app.example/cb?code=1"],
    ["https://app.example/cb?x=1", "https://app.example/cb?x=1&code=1"],
    ["https://app.example/cb?x=1&", "https://app.example/cb?x=1&code=1"],
  ])("come after those of %s", (text, expected) => {
    expect(withQuery(text, "code=1")).toBe(expected);
  });
});
