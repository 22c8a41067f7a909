/** The project is written in plain technical English: a noun of docs/glossary.md, never a headless clause. */
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { readTexts } from "../support/language.js";

const root = fileURLToPath(new URL("../../", import.meta.url));

const BANNED =
  /\b(?:whoever|whatever|nobody|somebody|anybody|anew|(?:of|for|by|than) what|what (?:is|was|are|were|has|had|comes|came|it|they)\b|is told|are told)/gi;

/** Turns of phrase that a folder may have. The numbers only ever go down. */
const ALLOWED: readonly (readonly [folder: string, count: number])[] = [
  ["src/", 3],
  ["dashboard/", 0],
  ["docs/", 4],
  ["schema/", 0],
  ["prisma/", 4],
  ["test/", 0],
  ["", 2],
];

it("leaves headless clauses out of comments, descriptions, test names and pages", () => {
  const found = new Map(ALLOWED.map(([folder]) => [folder, 0]));
  for (const { file, text } of readTexts(root)) {
    const [folder] = ALLOWED.find(([start]) => file.startsWith(start)) ?? [""];
    found.set(folder, (found.get(folder) ?? 0) + (text.match(BANNED)?.length ?? 0));
  }

  const above = ALLOWED.filter(([folder, count]) => (found.get(folder) ?? 0) > count);
  expect(above.map(([folder, count]) => `${folder}: ${found.get(folder)}, and ${count} are allowed`)).toEqual([]);
});
