/** What a request makes is gone when it is over: docs/decisions/garbage.md. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Syntax, syntaxOf, visit } from "../support/syntax.js";

function gettersOfLiterals(source: string): string[] {
  const found: string[] = [];
  visit(syntaxOf(source), (node) => {
    if (node.type !== "ObjectExpression") return;
    for (const { kind, key } of node.properties as Syntax[]) {
      if (kind === "get" || kind === "set") found.push(String((key as Syntax).name ?? (key as Syntax).value));
    }
  });
  return found;
}

describe("an object literal", () => {
  it("has no getter, in all of src", () => {
    const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter(
      (file) => file.endsWith(".ts") && !file.includes("generated"),
    );

    const found = files.flatMap((file) => gettersOfLiterals(readFileSync(join("src", file), "utf8")).map((name) => `${file}: ${name}`));

    expect(files.length).toBeGreaterThan(400);
    expect(found).toEqual([]);
  });

  it("is distinguished from a class, which may have one", () => {
    expect(gettersOfLiterals("const a = { b: 1, get c() { return 1; }, set 'd'(e) {} }; class F { get g() { return 2; } }")).toEqual([
      "c",
      "d",
    ]);
  });
});
