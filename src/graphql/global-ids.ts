/**
 * Global ids: `Node.id` names a thing among all things. It is opaque to clients. Where an id is an argument, the id that REST shows is
 * taken, too.
 */
import { wrongField } from "../errors.js";
import { unstorableIn } from "../lib/storable-text.js";

export interface GlobalId {
  readonly typeName: string;
  /** The id that REST shows. */
  readonly id: string;
}

const GLOBAL_ID = /^([A-Z][A-Za-z]{0,63}):(.{1,512})$/su;
/** Base64url of the longest that the pattern takes. */
const CHARS_MAX = 3_000;

export function toGlobalId(typeName: string, id: string): string {
  return Buffer.from(`${typeName}:${id}`).toString("base64url");
}

/** Null for what `toGlobalId` has not made. */
export function parseGlobalId(text: string): GlobalId | null {
  if (text.length > CHARS_MAX) return null;
  const match = GLOBAL_ID.exec(Buffer.from(text, "base64url").toString("utf8"));
  if (!match) return null;
  const [, typeName = "", id = ""] = match;
  if (unstorableIn(id) !== null) return null;
  // Node reads over what is not base64url.
  return toGlobalId(typeName, id) === text ? { typeName, id } : null;
}

/**
 * The id that REST shows, of an argument that is either that or a global id of one of these types. BAD_REQUEST with `param` for the
 * global id of something else.
 */
export function readId(text: string, typeNames: string | readonly string[], param: string): string {
  const globalId = parseGlobalId(text);
  if (globalId === null) return text;
  const wanted = typeof typeNames === "string" ? [typeNames] : typeNames;
  if (wanted.includes(globalId.typeName)) return globalId.id;
  throw wrongField(param, `is the id of a ${globalId.typeName}, and must be that of a ${wanted.join(" or ")}`);
}

/** `readId` for an argument that may be left out. */
export function readOptionalId<Absent extends null | undefined>(
  text: string | Absent,
  typeNames: string | readonly string[],
  param: string,
): string | Absent {
  return text === null || text === undefined ? (text as Absent) : readId(text, typeNames, param);
}
