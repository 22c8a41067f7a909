/** One function writes texts of callers and upstreams into headers: `headerText` of lib/header-text.ts, which knows the alphabet of each place. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { readSources } from "../support/boundaries.js";

const root = new URL("../../", import.meta.url).pathname;
const HOME = "src/lib/header-text.ts";

/** A class of all but printable ASCII, which is removed from a header's text. */
const NOT_PRINTABLE = /\[\^\\x2[01]/;
/** A header that is written with a text put in. */
const WRITTEN = /["'`](?:content-disposition|www-authenticate|x-warnings)["'`]\]?\s*[:=]\s*(.+)/gi;
/** What may stand there. */
const BUILT = /^(?:toDisposition\(|challengeOf\(|toWarningsHeader\(|disposition\b|_,)/;

const sources = readSources(root, ["src"]);

it("is the only file with a rule for characters in a header", () => {
  const others = [...sources].filter(([file, text]) => file !== HOME && NOT_PRINTABLE.test(text)).map(([file]) => file);

  expect(NOT_PRINTABLE.test(readFileSync(root + HOME, "utf8"))).toBe(true);
  expect(others).toEqual([]);
});

it("builds every header that holds a text from outside", () => {
  const written = [...sources].flatMap(([file, text]) =>
    [...text.matchAll(WRITTEN)].map(([, value = ""]) => [file, value.trim()] as const),
  );

  expect(written.length).toBeGreaterThan(3);
  expect(written.filter(([, value]) => !BUILT.test(value))).toEqual([]);
});
