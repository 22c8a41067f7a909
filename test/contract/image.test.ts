/** The image's build: what the Dockerfile copies is in the context that the builder is sent. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));
const linesOf = (file: string) => readFileSync(`${root}${file}`, "utf8").split("\n");

it("copies nothing that the image's context leaves out", () => {
  const [first, ...exceptions] = linesOf(".dockerignore");
  const sent = new Set(exceptions.filter((line) => line.startsWith("!")).map((line) => line.slice(1)));
  const isSent = (path: string) => path.split("/").some((_, index, parts) => sent.has(parts.slice(0, index + 1).join("/")));
  const copied = linesOf("Dockerfile").flatMap((line) =>
    line.startsWith("COPY ") && !line.includes("--from=") ? line.split(/\s+/).slice(1, -1) : [],
  );

  expect(first).toBe("*");
  expect(copied.length).toBeGreaterThan(8);
  expect(copied.filter((path) => !isSent(path) || !existsSync(`${root}${path}`))).toEqual([]);
});
