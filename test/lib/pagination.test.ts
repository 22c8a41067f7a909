import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Cursors,
  decodeCursor,
  encodeCursor,
  NEWEST_FIRST,
  newestFirst,
  type PagePosition,
  type PageRequest,
  RANKED,
  toPage,
} from "../../src/lib/pagination.js";

const ID = "0199c0de-0000-7000-8000-000000000001";
const OTHER_ID = "0199c0de-0000-7000-8000-000000000002";
const AT = new Date("2026-11-26T12:00:00.123Z");
const POSITION: PagePosition = { timestamp: AT, id: ID };
/** The last moment of the year 9999 that cursors accept. */
const LAST_DAY = Date.UTC(9999, 11, 31);

const list = fc.stringMatching(/^[A-Za-z]{1,32}$/);
const timestamps = fc.date({ min: new Date(0), max: new Date(LAST_DAY), noInvalidDate: true });
const positions = fc.record({ timestamp: timestamps, id: fc.uuid() });

function base64url(text: string): string {
  return Buffer.from(text).toString("base64url");
}

describe("a cursor of a list by time", () => {
  it("returns its position to the list that made it", () => {
    fc.assert(
      fc.property(positions, list, (position, name) => {
        expect(decodeCursor(encodeCursor(position, name), name)).toEqual(position);
      }),
    );
  });

  it("is refused by every other list", () => {
    fc.assert(
      fc.property(positions, list, list, (position, name, other) => {
        fc.pre(name !== other);
        expect(decodeCursor(encodeCursor(position, name), other)).toBeNull();
      }),
    );
  });

  it("is refused after the last day of the year 9999", () => {
    expect(decodeCursor(encodeCursor({ timestamp: new Date(LAST_DAY), id: ID }, "usage"), "usage")).not.toBeNull();
    expect(decodeCursor(encodeCursor({ timestamp: new Date(LAST_DAY + 1), id: ID }, "usage"), "usage")).toBeNull();
  });

  it.each([
    ["empty text", ""],
    ["another text", "hello"],
    ["a list without a position", base64url("usage")],
    ["an id that is no UUID", base64url(`usage.1.${"0".repeat(36)}`)],
    ["an id with a trailing character", base64url(`usage.1.${ID}0`)],
    ["a time with a leading zero", base64url(`usage.01.${ID}`)],
    ["a time below zero", base64url(`usage.-1.${ID}`)],
    ["a time with a fraction", base64url(`usage.1.5.${ID}`)],
    ["padding", `${base64url(`usage.1.${ID}`)}=`],
    ["characters that Node's decoder skips", `${base64url(`usage.1.${ID}`)}!`],
    ["white space", ` ${base64url(`usage.1.${ID}`)}`],
    ["text far above the length of a cursor", base64url(`usage.1.${ID}`).padEnd(1_000_000, "A")],
  ])("is refused when it is %s", (_what, cursor) => {
    expect(decodeCursor(cursor, "usage")).toBeNull();
  });

  it("is read only from the text that encodes it", () => {
    const cursor = encodeCursor(POSITION, "usage");
    const change = fc.tuple(fc.nat(cursor.length - 1), fc.constantFrom("", "A", "z", "-", "+", "/", "=", "ä"));
    fc.assert(
      fc.property(change, ([at, letter]) => {
        const changed = cursor.slice(0, at) + letter + cursor.slice(at + 1);
        const decoded = decodeCursor(changed, "usage");
        if (decoded !== null) expect(encodeCursor(decoded, "usage")).toBe(changed);
      }),
      { numRuns: 500 },
    );
  });

  it("is the same as that of the list's cursors", () => {
    expect(NEWEST_FIRST.encode(POSITION, "usage")).toBe(encodeCursor(POSITION, "usage"));
    expect(NEWEST_FIRST.decode(encodeCursor(POSITION, "usage"), "usage")).toEqual(POSITION);
  });
});

describe("a cursor of a list by rank", () => {
  const ranks = fc.oneof(fc.string(), fc.string({ unit: "binary" }), fc.constantFrom("", ".", '"', "\\", "\0", "\ud800", "名"));

  it("returns its position to the list that made it, for any rank", () => {
    fc.assert(
      fc.property(ranks, fc.string(), list, (rank, id, name) => {
        expect(RANKED.decode(RANKED.encode({ rank, id }, name), name)).toEqual({ rank, id });
      }),
      { numRuns: 500 },
    );
  });

  it("is refused by every other list, and by a list by time", () => {
    const cursor = RANKED.encode({ rank: "1", id: ID }, "models");

    expect(RANKED.decode(cursor, "media")).toBeNull();
    expect(NEWEST_FIRST.decode(cursor, "models")).toBeNull();
    expect(RANKED.decode(encodeCursor(POSITION, "models"), "models")).toBeNull();
  });

  it.each([
    ["empty text", ""],
    ["no JSON", base64url("[")],
    ["no array", base64url('{"0":"models","1":"a","2":"b"}')],
    ["null", base64url("null")],
    ["an array without an id", base64url('["models","a"]')],
    ["a fourth item", base64url('["models","a","b","c"]')],
    ["a rank that is a number", base64url('["models",1,"b"]')],
    ["white space", base64url('["models", "a","b"]')],
    ["an escape where none is needed", base64url('["models","\\u0061","b"]')],
    ["padding", `${base64url('["models","a","b"]')}=`],
    ["text above the length of a cursor", base64url(JSON.stringify(["models", "a".repeat(10_000), "b"]))],
  ])("is refused when it is %s", (_what, cursor) => {
    expect(RANKED.decode(cursor, "models")).toBeNull();
  });
});

interface Row {
  readonly createdAt: Date;
  readonly id: string;
}
type Where = Readonly<Record<string, unknown>>;

/** Whether a row passes a condition in Prisma's form. */
function passes(row: Row, where: Where): boolean {
  return Object.entries(where).every(([name, condition]) => {
    if (name === "AND") return (condition as Where[]).every((each) => passes(row, each));
    if (name === "OR") return (condition as Where[]).some((each) => passes(row, each));
    const value = row[name as keyof Row];
    return Object.entries(condition as Record<string, Date | string>).every(([operator, bound]) => {
      if (operator === "lt") return value < bound;
      if (operator === "lte") return value <= bound;
      if (operator === "gt") return value > bound;
      if (operator === "gte") return value >= bound;
      throw new Error(`An operator that the test does not know: ${operator}.`);
    });
  });
}

function compare(one: Row, other: Row): number {
  const byTime = one.createdAt.getTime() - other.createdAt.getTime();
  return byTime || (one.id < other.id ? -1 : Number(one.id > other.id));
}

/** What a database answers to the arguments of a page. */
function query(rows: readonly Row[], page: PageRequest): Row[] {
  const { where, orderBy, take } = newestFirst(page);
  const [byTime] = orderBy;
  const direction = byTime && "createdAt" in byTime && byTime.createdAt === "asc" ? 1 : -1;
  return rows
    .filter((row) => passes(row, where))
    .sort((one, other) => direction * compare(one, other))
    .slice(0, take);
}

const uncounted = () => Promise.reject(new Error("This page was not to be counted."));

function pageOf(rows: readonly Row[], page: PageRequest) {
  return toPage(query(rows, page), page, uncounted);
}

function positionOf(row: Row | undefined): PagePosition | undefined {
  return row && { timestamp: row.createdAt, id: row.id };
}

/** Many rows of the same few moments, as of one transaction. */
const tables = fc
  .uniqueArray(fc.record({ time: fc.integer({ min: 0, max: 3 }), id: fc.integer({ min: 0, max: 999 }) }), {
    selector: ({ id }) => id,
    maxLength: 20,
  })
  .map((rows) => rows.map(({ time, id }): Row => ({ createdAt: new Date(time), id: String(id).padStart(3, "0") })));

describe("pages of a list, newest first", () => {
  const sizes = fc.integer({ min: 1, max: 7 });

  it("have every row once and in order when followed forwards", () => {
    fc.assert(
      fc.property(tables, sizes, (rows, first) => {
        const seen: Row[] = [];
        for (let after: PagePosition | undefined; ; after = positionOf(seen.at(-1))) {
          const page = pageOf(rows, { first, after });
          seen.push(...page.items);
          expect(page.hasPreviousPage).toBe(after !== undefined);
          if (!page.hasNextPage) break;
          expect(page.items).toHaveLength(first);
        }
        expect(seen).toEqual([...rows].sort((one, other) => compare(other, one)));
      }),
    );
  });

  it("have every row once and in order when followed backwards from the end", () => {
    fc.assert(
      fc.property(tables, sizes, (rows, first) => {
        let seen: Row[] = [];
        for (let before: PagePosition | undefined; ; before = positionOf(seen[0])) {
          const page = pageOf(rows, { first, before, isFromEnd: true });
          seen = [...page.items, ...seen];
          expect(page.hasNextPage).toBe(before !== undefined);
          if (!page.hasPreviousPage) break;
          expect(page.items).toHaveLength(first);
        }
        expect(seen).toEqual([...rows].sort((one, other) => compare(other, one)));
      }),
    );
  });

  it("exclude both of their bounds", () => {
    fc.assert(
      fc.property(tables, fc.nat(), fc.nat(), fc.boolean(), (rows, one, other, isFromEnd) => {
        fc.pre(rows.length > 0);
        const sorted = [...rows].sort((row, next) => compare(next, row));
        const [from, to] = [one % rows.length, other % rows.length].sort((a, b) => a - b) as [number, number];
        const bounds = { after: positionOf(sorted[from]), before: positionOf(sorted[to]) };

        expect(pageOf(rows, { first: 20, ...bounds, isFromEnd }).items).toEqual(sorted.slice(from + 1, to));
      }),
    );
  });

  it("take one row more than a page, and never show it", () => {
    const rows = [0, 1, 2].map((time): Row => ({ createdAt: new Date(time), id: ID }));

    expect(newestFirst({ first: 2 }).take).toBe(3);
    expect(pageOf(rows, { first: 2 })).toMatchObject({ items: [rows[2], rows[1]], hasNextPage: true });
    expect(pageOf(rows, { first: 3 })).toMatchObject({ hasNextPage: false, hasPreviousPage: false });
    expect(pageOf(rows, { first: 2, isFromEnd: true })).toMatchObject({ items: [rows[1], rows[0]], hasPreviousPage: true });
  });

  it("may sort by other columns", () => {
    const { where, orderBy } = newestFirst({ first: 1, after: POSITION }, "timestamp", "transactionId");

    expect(orderBy).toEqual([{ timestamp: "desc" }, { transactionId: "desc" }]);
    expect(where.AND).toEqual([{ timestamp: { lte: AT }, OR: [{ timestamp: { lt: AT } }, { transactionId: { lt: ID } }] }]);
  });

  it("leave the rows that they were made of unchanged, and pass the count on", async () => {
    const rows: readonly string[] = Object.freeze([OTHER_ID, ID]);

    const page = toPage(rows, { first: 2, isFromEnd: true }, async () => 7);

    expect(page.items).toEqual([ID, OTHER_ID]);
    expect(await page.count()).toBe(7);
  });
});

describe("cursors", () => {
  it.each<[string, Cursors<never>]>([
    ["time", NEWEST_FIRST as Cursors<never>],
    ["rank", RANKED as Cursors<never>],
  ])("by %s are never read from text of another form", (_what, cursors) => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String(), fc.json().map(base64url)), (text) => {
        expect(cursors.decode(text, "models")).toBeNull();
      }),
    );
  });
});
