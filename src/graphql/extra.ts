/** `extra`: fields of a body that the schema does not name, by their wire names. */
import { invalidInput, wrongField } from "../errors.js";

/** The fields that were stated, and the further ones. Throws BAD_REQUEST when `extra` is no object or states a field again. */
export function withExtra(fields: Readonly<Record<string, unknown>>, extra: unknown): Record<string, unknown> {
  const stated = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
  if (extra === undefined || extra === null) return stated;
  if (typeof extra !== "object" || Array.isArray(extra)) throw wrongField("extra", "expected an object");
  const taken = Object.keys(extra).find((name) => Object.hasOwn(fields, name));
  if (taken !== undefined) throw invalidInput(`${taken} has a field of its own.`, `extra.${taken}`);
  return { ...extra, ...stated };
}
