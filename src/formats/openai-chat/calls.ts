/**
 * The tool calls of one streamed choice. Servers disagree about what says which call a piece belongs to: its id, its index, or its place in
 * the list. Here it is its id, then its index, then its place. Pieces that leave have an index for each call, in the order in which the
 * calls began, and the id, type and name in the first piece alone: official clients put together such pieces and no others.
 */
import { createId } from "../../lib/ids.js";
import { isRecord } from "../../lib/json.js";
import { ProviderError } from "../upstream-error.js";
import type { ChatDelta } from "./schema.js";

export type CallPiece = NonNullable<ChatDelta["tool_calls"]>[number] & Readonly<Record<string, unknown>>;

interface Call {
  /** The index that its pieces leave with. */
  readonly index: number;
  /** Empty until it is known or made. */
  id: string;
  /** The id is the upstream's. */
  hasUpstreamId: boolean;
  name: string;
  readonly input: JsonProgress;
  /** Its pieces that have not left. */
  held: JoinedPieces | null;
}

/** Unspecified: characters that wait for a call's name. */
const HELD_CHARS_MAX = 64 * 1024;
/** Unspecified: calls of one choice. */
const CALLS_MAX = 1024;

export class StreamedCalls {
  private readonly calls: Call[] = [];
  /** The calls before this index have begun to leave. */
  private sent = 0;
  private heldChars = 0;
  private readonly byId = new Map<string, Call>();
  private readonly byIndex = new Map<number, Call>();
  private readonly byPlace = new Map<number, Call>();
  /** Several calls have come under one index, so that indices say nothing. */
  private isIndexShared = false;

  get isHolding(): boolean {
    return this.sent < this.calls.length;
  }

  /**
   * The pieces to pass on; `pieces` itself when it is right already. A call waits for its name, because clients need it in the first
   * piece, and those that began later wait with it. `isLast`: nothing waits any longer.
   */
  take(pieces: readonly CallPiece[], isLast: boolean): readonly CallPiece[] {
    const passed: CallPiece[] = [];
    for (const [place, piece] of pieces.entries()) {
      const call = this.callOf(piece, place);
      if (call.index < this.sent) passed.push(toLaterPiece(call, piece));
      else {
        if (call.held === null) call.held = new JoinedPieces(piece);
        else call.held.add(piece);
        this.heldChars += inputOf(piece).length;
      }
      note(call, piece);
      this.release(passed, false);
    }
    if (isLast || this.heldChars > HELD_CHARS_MAX) this.release(passed, true);
    const once = passed.length > 1 ? oncePerCall(passed) : passed;
    return once.length === pieces.length && once.every((piece, index) => piece === pieces[index]) ? pieces : once;
  }

  private callOf(piece: CallPiece, place: number): Call {
    const id = idOf(piece);
    const index = indexOf(piece);
    let call = this.known(piece, id, index, place);
    if (call === null) {
      if (index !== null && this.byIndex.has(index)) this.isIndexShared = true;
      assertRoom(this.calls.length);
      const own = this.byId.has(id) ? "" : id;
      call = { index: this.calls.length, id: own, hasUpstreamId: id !== "", name: "", input: new JsonProgress(), held: null };
      this.calls.push(call);
      if (id !== "") this.byId.set(id, call);
    } else if (id !== "" && !call.hasUpstreamId) {
      call.hasUpstreamId = true;
      if (call.id === "") call.id = id;
      this.byId.set(id, call);
    }
    if (index !== null) {
      if (!this.byIndex.has(index)) assertRoom(this.byIndex.size);
      this.byIndex.set(index, call);
    }
    this.byPlace.set(place, call);
    return call;
  }

  private known(piece: CallPiece, id: string, index: number | null, place: number): Call | null {
    const same = id === "" ? undefined : this.byId.get(id);
    if (same) return beginsAnother(same, piece) ? null : same;
    const there = this.at(index, place);
    return there && goesOn(there, piece, id, index) ? there : null;
  }

  private at(index: number | null, place: number): Call | undefined {
    if (index !== null && !this.isIndexShared) return this.byIndex.get(index);
    return this.byPlace.get(place) ?? (index === null ? this.calls.at(-1) : this.byIndex.get(index));
  }

  private release(passed: CallPiece[], isForced: boolean): void {
    for (;;) {
      const call = this.calls[this.sent];
      if (!call || (call.name === "" && !isForced)) return;
      this.sent += 1;
      if (call.held === null) continue;
      passed.push(toFirstPiece(call, call.held.toPiece()));
      call.held = null;
      if (this.sent === this.calls.length) this.heldChars = 0;
    }
  }
}

/** Whether the arguments of a call have ended: brackets and quotes outside of texts are closed. */
class JsonProgress {
  isEmpty = true;
  private depth = 0;
  private isInText = false;
  private isEscaped = false;
  private hasBegun = false;

  get isWhole(): boolean {
    return this.hasBegun && this.depth === 0 && !this.isInText;
  }

  add(text: string): void {
    if (text !== "") this.isEmpty = false;
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (this.isEscaped) this.isEscaped = false;
      else if (this.isInText) {
        if (code === BACKSLASH) this.isEscaped = true;
        else if (code === QUOTE) this.isInText = false;
      } else if (code === QUOTE) this.isInText = true;
      else if (code === BRACE || code === BRACKET) {
        this.hasBegun = true;
        this.depth += 1;
      } else if (code === BRACE_END || code === BRACKET_END) this.depth -= 1;
    }
  }
}

const [QUOTE, BACKSLASH, BRACE, BRACE_END, BRACKET, BRACKET_END] = [0x22, 0x5c, 0x7b, 0x7d, 0x5b, 0x5d];

/** Whether a piece whose index or place is the call's belongs to it: its id is not another's, and neither is its name. */
function goesOn(call: Call, piece: CallPiece, id: string, index: number | null): boolean {
  const name = nameOf(piece);
  if (id !== "" && call.hasUpstreamId) {
    // vLLM makes an id for each piece, and for some models repeats the name.
    if (index === null || name === "") return index !== null;
    return name === call.name && !call.input.isEmpty && !call.input.isWhole && inputOf(piece) !== "";
  }
  if (name === "" || call.name === "") return true;
  if (name === call.name) return !beginsAnother(call, piece);
  // Some servers write a name in pieces, before the arguments.
  return id === "" && index !== null && call.input.isEmpty;
}

/** Servers that use a name as the id, or one id for all calls, repeat the name, and go on behind whole arguments. */
function beginsAnother(call: Call, piece: CallPiece): boolean {
  return nameOf(piece) !== "" && call.input.isWhole && inputOf(piece).trim() !== "";
}

function note(call: Call, piece: CallPiece): void {
  const name = nameOf(piece);
  if (name !== "" && name !== call.name) call.name += name;
  call.input.add(inputOf(piece));
}

/** With id, type and name. */
function toFirstPiece(call: Call, piece: CallPiece): CallPiece {
  const { type, function: called, custom } = piece;
  if (call.id === "") call.id = createCallId();
  const hasType = typeof type === "string" && type !== "";
  if (hasType && piece.index === call.index && piece.id === call.id && call.name !== "") return piece;
  const made = { ...piece, index: call.index, id: call.id, type: hasType ? type : isRecord(custom) ? "custom" : "function" };
  return isRecord(custom) ? made : { ...made, function: { ...called, name: call.name, arguments: called?.arguments ?? "" } };
}

/** Without what the first piece has: Python's client appends texts. */
function toLaterPiece(call: Call, piece: CallPiece): CallPiece {
  const isRepeated = call.name !== "" && nameOf(piece) === call.name;
  if (piece.index === call.index && idOf(piece) === "" && !isRepeated) return piece;
  const { id: _, ...rest } = piece;
  const made = { ...rest, index: call.index };
  return isRepeated ? withoutName(made) : made;
}

function withoutName({ function: called, custom, ...rest }: CallPiece): CallPiece {
  const { name: _name, ...input } = called ?? {};
  const { name: _other, ...customInput } = custom ?? {};
  return { ...rest, ...(called && { function: input }), ...(custom && { custom: customInput }) };
}

/** Pieces of one call in one chunk as one. */
function oncePerCall(pieces: readonly CallPiece[]): readonly CallPiece[] {
  const byIndex = new Map<unknown, JoinedPieces>();
  for (const piece of pieces) {
    const before = byIndex.get(piece.index);
    if (before) before.add(piece);
    else byIndex.set(piece.index, new JoinedPieces(piece));
  }
  return byIndex.size === pieces.length ? pieces : [...byIndex.values()].map((joined) => joined.toPiece());
}

/** Pieces of one call as one. A single piece stays as it is; several keep only the fields that are named here. */
class JoinedPieces {
  private isSingle = true;
  private id = "";
  private type: unknown;
  private extra: unknown;
  private called: JoinedTexts | null = null;
  private custom: JoinedTexts | null = null;

  constructor(private readonly first: CallPiece) {
    this.note(first);
  }

  add(piece: CallPiece): void {
    this.isSingle = false;
    this.note(piece);
  }

  toPiece(): CallPiece {
    if (this.isSingle) return this.first;
    const { id, type, extra, called, custom } = this;
    return {
      index: this.first.index,
      ...(id !== "" && { id }),
      ...(type ? { type } : {}),
      ...(called && { function: { ...called.named, arguments: called.inputs.join("") } }),
      ...(custom && { custom: { ...custom.named, input: custom.inputs.join("") } }),
      ...(extra !== undefined && { extra_content: extra }),
    };
  }

  private note(piece: CallPiece): void {
    const { type, function: called, custom, extra_content: extra } = piece;
    if (this.id === "") this.id = idOf(piece);
    this.type ||= type;
    if (extra !== undefined) this.extra = extra;
    if (called) {
      this.called ??= new JoinedTexts();
      this.called.add(called.name, called.arguments);
    }
    if (custom) {
      this.custom ??= new JoinedTexts();
      this.custom.add(custom.name, custom.input);
    }
  }
}

class JoinedTexts {
  readonly inputs: string[] = [];
  private name = "";

  get named(): { readonly name?: string } {
    return this.name === "" ? {} : { name: this.name };
  }

  add(name: unknown, input: unknown): void {
    const more = textOf(name);
    if (more !== this.name) this.name += more;
    if (typeof input === "string" && input !== "") this.inputs.push(input);
  }
}

function assertRoom(size: number): void {
  if (size >= CALLS_MAX)
    throw new ProviderError("invalid-response", `The upstream's stream holds more than ${CALLS_MAX} tool calls in one choice.`);
}

export function createCallId(): string {
  return `call_${createId().replaceAll("-", "")}`;
}

function idOf({ id }: CallPiece): string {
  return textOf(id);
}

function indexOf({ index }: CallPiece): number | null {
  return typeof index === "number" ? index : null;
}

function nameOf({ function: called, custom }: CallPiece): string {
  return textOf(called?.name) || textOf(custom?.name);
}

function inputOf({ function: called, custom }: CallPiece): string {
  return textOf(called?.arguments) || textOf(custom?.input);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
