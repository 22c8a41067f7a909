/** No prose holds the marks of a merge that was committed unfinished: code with them would not compile. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { filesBelow } from "../setup/files-below.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const MARK = /^(?:<{7}|>{7}) /m;

it("finds no mark of an unfinished merge", () => {
  const texts = [...readdirSync(root), ...filesBelow(`${root}docs`).map((file) => `docs/${file}`)].filter((file) => file.endsWith(".md"));

  expect(texts).toContain("CHANGELOG.md");
  expect(texts.filter((file) => MARK.test(readFileSync(root + file, "utf8")))).toEqual([]);
});
