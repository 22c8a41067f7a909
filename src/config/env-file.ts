/**
 * Reads `.env` in the working directory, for starts by hand. The environment takes precedence, also with an empty value. Node's own parser
 * ignores malformed lines, so those are detected here first.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { StartError } from "../lib/start-error.js";

const NAME = /^(?:export\s+)?[A-Za-z_][A-Za-z0-9_]*$/;
const QUOTES: ReadonlySet<string> = new Set(['"', "'", "`"]);

/**
 * Adds the variables of the file in `directory` to `env`; without a file does nothing. Throws a StartError that names the bad lines without
 * values.
 */
export function addEnvFile(env: Record<string, string | undefined>, directory: string): void {
  const file = join(directory, ".env");
  const text = readText(file);
  if (text === null) return;
  const problems = findProblems(text);
  if (problems.length > 0) throw new StartError(`${file} is not valid:\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
  Object.assign(env, Object.fromEntries(Object.entries(parseEnv(text)).filter(([name]) => !Object.hasOwn(env, name))));
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, "utf8")
      .replace(/^\uFEFF/, "")
      .replaceAll("\r\n", "\n");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    throw new StartError(`${file} cannot be read: ${message}`, { cause: error });
  }
}

/** Lines that are not `NAME=value`, a comment or empty, and unclosed quotes. */
function findProblems(text: string): string[] {
  const problems: string[] = [];
  const lines = text.split("\n");
  for (let index = 0; index < lines.length; index += 1) {
    const line = (lines[index] ?? "").trim();
    if (line === "" || line.startsWith("#")) continue;
    const place = `line ${index + 1}`;
    const equals = line.indexOf("=");
    if (equals === -1 || !NAME.test(line.slice(0, equals).trim())) {
      problems.push(`${place}: must read NAME=value; a comment begins with #`);
      continue;
    }
    const value = line.slice(equals + 1).trim();
    const quote = value.charAt(0);
    if (!QUOTES.has(quote) || value.includes(quote, 1)) continue;
    // A quoted value may span lines, up to the next such quote.
    const end = lines.findIndex((later, at) => at > index && later.includes(quote));
    if (end === -1) problems.push(`${place}: the quote ${quote} is not closed`);
    else index = end;
  }
  return problems;
}
