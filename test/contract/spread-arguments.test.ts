/**
 * No call takes a list of any length for its arguments: `push(...list)` and `Math.max(...list)` throw a RangeError for some 100,000 items,
 * and a caller may send as many. `append`, `least` and `greatest` of lib/collections.ts take any number.
 */
import { describe, expect, it } from "vitest";
import { findSpreadArguments, spreadsIn } from "../support/spread-arguments.js";

/** Lists that are bounded, each with what bounds it. */
const BOUNDED: Readonly<Record<string, string>> = {
  "src/graphql/types/usage-lists.ts: toSummaryQuery(...args)": "a tuple: the arguments of the field",
  "src/services/accounts/accounts.ts: toBalance(...(await this.loadMoney(caller.accountId)))": "a tuple",
  "src/services/accounts/accounts.ts: toBalance(...(await this.loadMoney(accountId)))": "a tuple",
  "src/store/sql-ledger.ts: within.$queryRawUnsafe(...values)": "the values of one statement of ours",
  "src/store/counters/redis.ts: this.redis.sluiceTake(...amounts)": "a tuple of three",
  "dashboard/src/pages/usage/list.ts: this.rows.unshift(...this.waiting)": "WAITING_MAX rows, a thousand",
};

const CALLS = ["src", "packages/sandbox/src", "dashboard/src"].flatMap((folder) =>
  findSpreadArguments(folder).map((call) => `${folder}/${call}`),
);

it("spreads no list of any length into the arguments of a call", () => {
  expect(CALLS.filter((call) => !Object.hasOwn(BOUNDED, call))).toEqual([]);
});

it("lists no call as bounded that is gone", () => {
  expect(Object.keys(BOUNDED).filter((call) => !CALLS.includes(call))).toEqual([]);
});

describe("is found", () => {
  it.each([
    "list.push(...items);",
    "const most = Math.max(...numbers.map(lengthOf));",
    "const all = new Map(...pairs);",
    "list.push(1, ...[...items]);",
    "String.fromCharCode.apply(null, codes);",
    "const f = (items: string[]) => fn(...items);",
    "async () => list.push(...(await read()));",
  ])("%s", (text) => {
    expect(spreadsIn(text)).toHaveLength(1);
  });
});

describe("is no such call", () => {
  it.each([
    "const all = [...items, ...more];",
    "const f = (...items: string[]) => fn(...items);",
    "fn(...[1, 2].map(double));",
    "fn(...NAMES);",
    "Reflect.apply(fn, owner, list);",
    "fn(...(isLong ? [a, b] : [a]));",
    "const { a, ...others } = fields;",
  ])("%s", (text) => {
    expect(spreadsIn(text)).toEqual([]);
  });
});
