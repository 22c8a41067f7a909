/** Handles: what an account is called in community model ids, `community/<handle>/<name>`. Unspecified: GitHub's rules for user names. */
import { randomInt } from "node:crypto";
import * as z from "zod";
import { HANDLE_CHARS_MAX } from "./limits.js";

const PATTERN = /^[a-z0-9][a-z0-9-]*$/;
/** Names of the gateway's own, and such as would be taken for them. */
const RESERVED: ReadonlySet<string> = new Set([
  "account",
  "admin",
  "administrator",
  "api",
  "auth",
  "community",
  "help",
  "me",
  "media",
  "models",
  "null",
  "official",
  "operator",
  "owner",
  "root",
  "sandbox",
  "security",
  "sluice",
  "staff",
  "support",
  "system",
  "undefined",
]);

export const handleInput = z
  .string()
  .trim()
  .toLowerCase()
  .min(1)
  .max(HANDLE_CHARS_MAX)
  .regex(PATTERN, "must be of the letters a to z, digits and dashes, and begin with a letter or digit")
  .refine((handle) => !RESERVED.has(handle), "is reserved");

const SUFFIX_DIGITS = 6;

/** The first of what `source` (a GitHub user name, or an e-mail address for the part before its @) suggests that is free. */
export async function chooseHandle(source: string, isTaken: (handle: string) => Promise<boolean>): Promise<string> {
  const stem = toStem(source);
  if (stem.length > 0 && !RESERVED.has(stem) && !(await isTaken(stem))) return stem;
  for (;;) {
    const suffix = String(randomInt(10 ** SUFFIX_DIGITS)).padStart(SUFFIX_DIGITS, "0");
    const handle = `${(stem || "account").slice(0, HANDLE_CHARS_MAX - SUFFIX_DIGITS - 1)}-${suffix}`;
    if (!(await isTaken(handle))) return handle;
  }
}

function toStem(source: string): string {
  const [local = ""] = source.normalize("NFKD").toLowerCase().split(/[+@]/, 1);
  // Dashes stand alone now, so that one at either end is all there is.
  return local
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-/, "")
    .slice(0, HANDLE_CHARS_MAX)
    .replace(/-$/, "");
}
