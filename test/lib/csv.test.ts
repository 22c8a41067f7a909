import { describe, expect, it } from "vitest";
import { toCsvCell as toDashboardCell } from "../../dashboard/src/ui/csv-cell.js";
import { toCsvCell as toGatewayCell } from "../../src/lib/csv.js";

describe.each([
  ["the gateway", toGatewayCell],
  ["the dashboard", toDashboardCell],
])("a cell of CSV of %s", (_, toCsvCell) => {
  it.each(["=1+1", " =1+1", "\n=1+1", "\r\n\t=1+1", "\u00a0@SUM(A1)", "\u200b+1", "\ufeff-1", "＝1+1", " ＋1", "－1", "＠x", "\tx"])(
    "is no formula: %j",
    (text) => {
      expect(toCsvCell(text).replace(/^"/, "")).toBe(`'${text}`.concat(/[\n\r,"]/.test(text) ? '"' : ""));
    },
  );

  it.each(["a=1", "ada@example.com", "", " plain", "1-2"])("stays as it is: %j", (text) => {
    expect(toCsvCell(text)).toBe(text);
  });

  it("keeps negative numbers", () => {
    expect(toCsvCell(-1.5)).toBe("-1.5");
  });
});
