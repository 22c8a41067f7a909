import { describe, expect, it } from "vitest";
import { reconcile } from "../../bench/support/reconcile.js";
import type { Answer } from "../../bench/support/recorded-load.js";

const whole: Answer = {
  stream: false,
  startedAt: 0,
  endedAt: 1,
  status: 200,
  isWhole: true,
  generationId: "a",
  costNanocredits: 5n,
  retryAfter: null,
};
const cut: Answer = { ...whole, isWhole: false, costNanocredits: null };
const refused: Answer = { ...cut, status: 503, generationId: "r" };

describe("reconcile", () => {
  it("finds nothing when each whole answer has its row at its price", () => {
    const result = reconcile([whole, { ...cut, generationId: "b" }], [charge("a", 5n), charge("b", 2n)]);

    expect(result).toEqual({ acknowledged: 1, rows: 2, unacknowledgedRows: 1, problems: [] });
  });

  it("finds a whole answer without a row", () => {
    expect(reconcile([whole], []).problems).toEqual(["1 whole answers have no usage row: a"]);
  });

  it("finds a row at another price than the caller was told", () => {
    expect(reconcile([whole], [charge("a", 6n)]).problems).toEqual(["1 answers cost something else than their usage row says: a"]);
  });

  it("finds answers that carry no id, or no price, or share an id", () => {
    expect(reconcile([{ ...whole, generationId: null }], []).problems).toEqual(["1 whole answers carried no X-Generation-Id: json"]);
    expect(reconcile([{ ...whole, costNanocredits: null }], [charge("a", 5n)]).problems).toEqual([
      "1 whole answers did not say what they cost: a",
    ]);
    expect(reconcile([whole, whole], [charge("a", 5n)]).problems).toEqual(["2 whole answers share 1 ids."]);
  });

  it("finds rows that no request accounts for", () => {
    expect(reconcile([whole], [charge("a", 5n), charge("x", 1n)]).problems).toEqual([
      "1 rows belong to no whole answer, but only 0 answers were cut off.",
    ]);
    expect(reconcile([whole], [charge("a", 5n), charge("x", 1n)], 1).problems).toEqual([]);
  });

  it("finds a charge for a request that was refused", () => {
    expect(reconcile([whole, refused], [charge("a", 5n), charge("r", 1n)], 1).problems).toEqual(["1 refused requests were charged: r"]);
  });
});

function charge(id: string, costNanocredits: bigint) {
  return { id, costNanocredits };
}
