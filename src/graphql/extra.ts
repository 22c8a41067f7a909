/** `extra`: fields of a body that the schema does not name, by their wire names. */
import { invalidInput, wrongField } from "../errors.js";

/**
 * The fields that were stated, and the further ones. Throws BAD_REQUEST when `extra` is no object, or names one of `fields` or of those
 * that the operation decides by itself.
 */
export function withExtra(
  fields: Readonly<Record<string, unknown>>,
  extra: unknown,
  reserved: readonly string[] = [],
): Record<string, unknown> {
  const stated = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
  if (extra === undefined || extra === null) return stated;
  if (typeof extra !== "object" || Array.isArray(extra)) throw wrongField("extra", "expected an object");
  const taken = Object.keys(extra).find((name) => reserved.includes(name) || Object.hasOwn(fields, name));
  if (taken === undefined) return { ...extra, ...stated };
  const reason = reserved.length > 0 ? "is set by the operation itself or by a field of its own" : "has a field of its own";
  throw invalidInput(`${taken} ${reason}.`, `extra.${taken}`);
}
