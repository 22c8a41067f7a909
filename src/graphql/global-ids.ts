/** Global IDs: `Node.id` is unique among all objects and opaque to clients. Arguments also accept the ID that REST shows. */
import { wrongField } from "../errors.js";
import { unstorableIn } from "../lib/storable-text.js";

export interface GlobalId {
  readonly typeName: string;
  /** The ID that REST shows. */
  readonly id: string;
}

const GLOBAL_ID = /^([A-Z][A-Za-z]{0,63}):(.{1,512})$/su;
/** The longest base64url that the pattern accepts. */
const CHARS_MAX = 3_000;

export function toGlobalId(typeName: string, id: string): string {
  return Buffer.from(`${typeName}:${id}`).toString("base64url");
}

/** Returns null for a text that `toGlobalId` did not make. */
export function parseGlobalId(text: string): GlobalId | null {
  if (text.length > CHARS_MAX) return null;
  const match = GLOBAL_ID.exec(Buffer.from(text, "base64url").toString("utf8"));
  if (!match) return null;
  const [, typeName = "", id = ""] = match;
  if (unstorableIn(id) !== null) return null;
  // Node ignores characters that are not base64url.
  return toGlobalId(typeName, id) === text ? { typeName, id } : null;
}

/**
 * Returns the REST ID of an argument that is either a REST ID or a global ID of one of these types. Throws BAD_REQUEST with `param`
 * for a global ID of another type.
 */
export function readId(text: string, typeNames: string | readonly string[], param: string): string {
  const globalId = parseGlobalId(text);
  if (globalId === null) return text;
  const wanted = typeof typeNames === "string" ? [typeNames] : typeNames;
  if (wanted.includes(globalId.typeName)) return globalId.id;
  throw wrongField(param, `is the id of a ${globalId.typeName}, and must be that of a ${wanted.join(" or ")}`);
}

/** `readId` for an optional argument. */
export function readOptionalId<Absent extends null | undefined>(
  text: string | Absent,
  typeNames: string | readonly string[],
  param: string,
): string | Absent {
  return text === null || text === undefined ? (text as Absent) : readId(text, typeNames, param);
}
