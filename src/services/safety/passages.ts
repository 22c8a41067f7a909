/**
 * The texts of a request that safety features check, as passages. A text of the client is one passage; names and values that belong
 * together, as in a tool's declaration, also form one, so that a name gives context to its value. Passages are read from a copy of the
 * request, and redactions are written there.
 */
import { ownValue, setOwnValue } from "../../lib/own-values.js";
import { JSON_DEPTH_MAX } from "../../limits.js";
import { jsonTokens } from "./json-tokens.js";
import type { Finding } from "./redaction.js";

type Fields = Readonly<Record<string, unknown>>;
type Write = (text: string) => void;

/** Between a name and its value, and between separate items; no detector reaches across the second. */
const BESIDE = ": ";
const APART = "\n--\n";

/** Shorter numbers are no telephone, card or account number. */
const TOLD_DIGITS_MIN = 7;

/** Opaque to models: values that a vendor encrypted or signed, and needs back unchanged. */
const OPAQUE_NAMES: ReadonlySet<string> = new Set([
  ...["signature", "thought_signature", "thoughtSignature", "encrypted_content", "encryptedContent", "redactedData", "data"],
]);
const NOT_OPAQUE = /[^A-Za-z0-9+/_=-]/;
/** Parts of the request refer to each other by these. */
const REFERENCES: ReadonlySet<string> = new Set(["id", "call_id", "tool_call_id", "item_id", "previous_item_id", "event_id"]);
/** In a schema: keywords, and fields that name its parts. */
const SCHEMA_WORDS: ReadonlySet<string> = new Set([
  ...["type", "required", "dependentRequired", "$ref", "$dynamicRef", "$recursiveRef", "$id", "$schema", "$anchor", "$dynamicAnchor"],
]);
/** A tool's name is in it or in its one object. */
const TOOL_NAME_LEVELS = 2;

/** A finding that cannot be removed: in a name, or in a text that must not change. */
export class Unredactable extends Error {
  constructor(readonly param: string) {
    super(`Something in ${param} cannot be rewritten.`);
  }
}

interface Piece {
  readonly start: number;
  readonly text: string;
  /** Null: must not change. */
  readonly write: Write | null;
}

export class Passage {
  private readonly pieces: Piece[] = [];
  private readonly looked: string[] = [];
  private readonly judged: string[] = [];
  private length = 0;

  constructor(
    /** Dotted path in the request. */
    readonly param: string,
    /** Text for blocking features instead of the pieces. */
    private readonly whole: string | null = null,
    /** Called after pieces were rewritten. */
    private readonly onWritten: (() => void) | null = null,
  ) {}

  /** The whole text for redacting features. */
  get text(): string {
    return this.looked.join("");
  }

  /** The whole text for blocking features. */
  get judgedText(): string {
    return this.whole ?? this.judged.join("");
  }

  add(text: string, write: Write | null, { glue = "", isJudged = true } = {}): void {
    this.pieces.push({ start: this.length, text, write });
    this.looked.push(text, glue);
    if (isJudged) this.judged.push(text, glue);
    this.length += text.length + glue.length;
  }

  /** `findings` are disjoint and in order. Throws Unredactable. */
  redact(findings: readonly Finding[]): void {
    let first = 0;
    const cuts = new Map<number, Finding[]>();
    for (const finding of findings) {
      while (first < this.pieces.length && this.endOf(first) <= finding.start) first += 1;
      let isTakenOut = false;
      for (let at = first; at < this.pieces.length && (this.pieces[at]?.start ?? 0) < finding.end; at += 1) {
        if (this.pieces[at]?.write == null) continue;
        isTakenOut = true;
        const own = cuts.get(at);
        if (own) own.push(finding);
        else cuts.set(at, [finding]);
      }
      if (!isTakenOut) throw new Unredactable(this.param);
    }
    for (const [at, own] of cuts) {
      const { start, text, write } = this.pieces[at] as Piece;
      write?.(replaced(text, own, start));
    }
    if (cuts.size > 0) this.onWritten?.();
  }

  private endOf(at: number): number {
    const { start = 0, text = "" } = this.pieces[at] ?? {};
    return start + text.length;
  }
}

function replaced(text: string, findings: readonly Finding[], offset: number): string {
  const parts: string[] = [];
  let copied = 0;
  for (const { start, end, mark } of findings) {
    parts.push(text.slice(copied, Math.max(copied, start - offset)), mark);
    copied = Math.min(text.length, end - offset);
  }
  parts.push(text.slice(copied));
  return parts.join("");
}

export class Passages {
  readonly all: Passage[] = [];
  /** Short values that belong to no text: ids, labels, unknown fields. */
  private rest: Passage | null = null;

  /** Adds a client's text. Text that is JSON stays JSON, and its names and values are checked decoded. */
  text(param: string, text: string, write: Write): void {
    if (text === "") return;
    const tokens = jsonTokens(text);
    if (tokens === null) {
      const passage = new Passage(param);
      passage.add(text, write);
      this.all.push(passage);
      return;
    }
    const changed = new Map<number, string>();
    const passage = new Passage(param, text, () => write(tokens.rewritten(changed)));
    for (const [index, { text: value, kind }] of tokens.list.entries()) {
      if (kind === "number" && value.length < TOLD_DIGITS_MIN) continue;
      passage.add(value, (after) => changed.set(index, after), { glue: kind === "name" ? BESIDE : APART });
    }
    this.all.push(passage);
  }

  /** Adds a tool, a function or an answer format, whose names must not change. */
  declaration(param: string, value: unknown, holder: object, key: string | number): void {
    const passage = new Passage(param);
    addValue(passage, value, holder, key, { isSchema: true, isFixed: false, depth: 0 });
    this.all.push(passage);
  }

  /** Adds a field with its content. `isFixed`: must not change. */
  field(param: string, value: unknown, holder: object, key: string | number, isFixed = false): void {
    if (typeof value === "string" && !isFixed && jsonTokens(value) !== null) {
      this.text(param, value, writerOf(holder, key));
      return;
    }
    if (this.rest === null) {
      this.rest = new Passage(param);
      this.all.push(this.rest);
    }
    if (typeof key === "string") this.rest.add(key, null, { glue: BESIDE });
    addValue(this.rest, value, holder, key, { isSchema: false, isFixed: isFixed || REFERENCES.has(String(key)), depth: 0 });
  }

  /** Adds an image, sound, video or file, without its bytes or address. */
  media(param: string, value: unknown, holder: object, key: string): void {
    if (typeof value === "string") {
      if (!(CONTENT_NAMES.has(key) && isContent(value))) this.field(param, value, holder, key);
    } else if (typeof value === "object" && value !== null) {
      for (const name of Object.keys(value)) this.media(param, ownValue(value as Fields, name), value, name);
    }
  }
}

interface Place {
  /** In a tool's declaration or a schema. */
  readonly isSchema: boolean;
  readonly isFixed: boolean;
  readonly depth: number;
}

/** `holder[key]` is the value. */
function addValue(passage: Passage, value: unknown, holder: object, key: string | number, place: Place, isOpaque = false): void {
  const { isSchema, isFixed, depth } = place;
  if (value === "") return;
  if (typeof value === "string") {
    const isJudged = !(isOpaque && !NOT_OPAQUE.test(value));
    passage.add(value, isFixed || !isJudged ? null : writerOf(holder, key), { glue: APART, isJudged });
  } else if (typeof value === "number") {
    const digits = String(value);
    if (digits.length >= TOLD_DIGITS_MIN && Number.isInteger(value))
      passage.add(digits, isFixed ? null : writerOf(holder, key), { glue: APART });
  } else if (typeof value !== "object" || value === null) {
    return;
  } else if (depth > JSON_DEPTH_MAX) {
    throw new Unredactable(passage.param);
  } else if (Array.isArray(value)) {
    const inner = { isSchema, isFixed, depth: depth + 1 };
    for (let index = 0; index < value.length; index += 1) addValue(passage, value[index], value, index, inner, isOpaque);
  } else {
    for (const name of Object.keys(value)) {
      passage.add(name, null, { glue: BESIDE });
      const isOwnFixed = isSchema ? SCHEMA_WORDS.has(name) || (name === "name" && depth < TOOL_NAME_LEVELS) : REFERENCES.has(name);
      const inner = { isSchema, isFixed: isFixed || isOwnFixed, depth: depth + 1 };
      addValue(passage, ownValue(value as Fields, name), value, name, inner, !isSchema && OPAQUE_NAMES.has(name));
    }
  }
}

function writerOf(holder: object, key: string | number): Write {
  return (text) => setOwnValue(holder as Record<string, unknown>, String(key), text);
}

/** Fields that hold a part's bytes, or their address. */
const CONTENT_NAMES: ReadonlySet<string> = new Set(["url", "data", "file_data", "image_url", "video_url", "audio"]);
const ADDRESS = /^https?:\/\/\S*$/i;
const DATA_URL_HEAD = /^data:[^,\s]{0,200};base64,/i;
const NOT_BASE64 = /[^A-Za-z0-9+/_=\r\n-]/g;

/** The bytes of an image, a recording or a file, or their address. */
function isContent(text: string): boolean {
  NOT_BASE64.lastIndex = DATA_URL_HEAD.exec(text)?.[0].length ?? 0;
  return !NOT_BASE64.test(text) || ADDRESS.test(text);
}
