/** Schemas of environment variables, from text to the configuration's type. */
import { isIP } from "node:net";
import { availableParallelism } from "node:os";
import * as z from "zod";
import { parseNanocredits } from "../lib/money.js";
import { parseBaseUrl } from "../lib/urls.js";
import { CREDITS_MAX } from "../limits.js";

export function wholeNumber(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,9}$/, { error: message, abort: true })
    .transform(Number)
    .refine((value) => value >= min && value <= max, message);
}

/** A number of processes, or the number of processors. */
export function workerCount(max: number) {
  const message = `must be a whole number from 1 to ${max}, or auto for one on each processor; leave it unset to run one process`;
  return z.string().transform((value, ctx) => {
    if (value === "auto") return Math.min(max, availableParallelism());
    const count = /^\d{1,3}$/.test(value) ? Number(value) : 0;
    if (count >= 1 && count <= max) return count;
    ctx.addIssue(message);
    return z.NEVER;
  });
}

/** Up to a petabyte less one. */
export function byteCount() {
  return z
    .string()
    .regex(/^\d{1,15}$/, "must be a whole number of bytes")
    .transform(Number);
}

export function boolean() {
  return z.enum(["true", "false", "1", "0"], "must be true, false, 1 or 0").transform((value) => value === "true" || value === "1");
}

/** On, off (null), or a share between 0 and 1. */
export function share() {
  return z.string().transform((value, ctx) => {
    if (value === "off") return null;
    if (value === "on") return 1;
    if (/^(?:0|1|0?\.\d{1,9}|1\.0{1,9})$/.test(value)) return Number(value);
    ctx.addIssue("must be on, off, or a number from 0 to 1");
    return z.NEVER;
  });
}

/** From 0 to 100 with at most 4 decimals, to millionths: `2.5` to 25000n. */
export function percent() {
  return z.string().transform((value, ctx) => {
    const [, whole = "", decimals = ""] = /^(\d{1,3})(?:\.(\d{1,4}))?$/.exec(value) ?? [];
    const millionths = whole === "" ? null : BigInt(whole) * 10_000n + BigInt(decimals.padEnd(4, "0"));
    if (millionths !== null && millionths <= 1_000_000n) return millionths;
    ctx.addIssue("must be a number from 0 to 100 with at most 4 decimals");
    return z.NEVER;
  });
}

/** Credits as a decimal string, to nanocredits. */
export function credits() {
  return z.string().transform((value, ctx) => {
    const nanocredits = parseNanocredits(value);
    if (nanocredits !== null && nanocredits >= 0n && nanocredits <= BigInt(CREDITS_MAX) * 10n ** 9n) return nanocredits;
    ctx.addIssue(`must be a number of credits from 0 to ${CREDITS_MAX} with at most 9 decimals`);
    return z.NEVER;
  });
}

export function url(protocol: RegExp, message: string) {
  return z.string().refine((value) => URL.canParse(value) && protocol.test(new URL(value).protocol), message);
}

export function httpUrl() {
  return z.string().transform((value, ctx) => {
    const baseUrl = parseBaseUrl(value);
    if (baseUrl !== null) return baseUrl;
    ctx.addIssue("must be an http or https URL without credentials, query and fragment");
    return z.NEVER;
  });
}

/** For people to open: with a query and fragment if need be. */
export function linkUrl(charsMax: number) {
  const message = `must be an https, http or mailto URL of at most ${charsMax} characters, without a user name and password`;
  return z.string().refine((value) => {
    if (value.length > charsMax || !URL.canParse(value)) return false;
    const { protocol, username, password } = new URL(value);
    return LINK_PROTOCOLS.has(protocol) && username === "" && password === "";
  }, message);
}
const LINK_PROTOCOLS: ReadonlySet<string> = new Set(["https:", "http:", "mailto:"]);

/** Splits `a.example, 10.0.0.1,[::1]`. */
export function hosts() {
  const host = z
    .string()
    .transform((value) =>
      value
        .trim()
        .replace(/^\[(.*)\]$/, "$1")
        .toLowerCase(),
    )
    .refine(
      (value) => isIP(value) !== 0 || /^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$/.test(value),
      "must be host names or addresses without a port, separated by commas",
    );
  return z
    .string()
    .transform((value) => value.split(",").filter((part) => part.trim() !== ""))
    .pipe(z.array(host));
}

export function json<Schema extends z.ZodType>(schema: Schema) {
  return z
    .string()
    .transform((value, ctx): unknown => {
      try {
        return JSON.parse(value);
      } catch {
        ctx.addIssue("must be JSON");
        return z.NEVER;
      }
    })
    .pipe(schema);
}
