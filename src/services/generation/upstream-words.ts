/**
 * What an upstream says, as callers are told it: its own name for a model becomes the id that they know the model by
 * (docs/spec/generation.md). Every text of an upstream's that goes on, an error's or a warning's, comes through here.
 */
import type { Model } from "../catalog/model.js";

/** Whoever answered, or was to. */
export type Served = Pick<Model, "id" | "upstreamModel" | "isCommunity">;

const WORD_CHARACTER = /[\p{L}\p{N}]/u;
const LETTERS_ALONE = /^\p{L}+$/u;
const QUOTES: ReadonlySet<string | undefined> = new Set(['"', "'", "`", "‘", "’", "“", "”"]);

/**
 * The name counts where it stands as a word of its own, in any case. One of letters alone (`image`) is also a word of the language: of
 * an operator's model it counts between quotes, of an account's everywhere, because what that is called is its owner's secret.
 */
export function inCallersWords(text: string, { id, upstreamModel: name, isCommunity }: Served): string {
  if (name === id || name === "") return text;
  const mustBeQuoted = !isCommunity && LETTERS_ALONE.test(name);
  const [said, sought] = [toComparable(text), toComparable(name)];
  const offset = toComparable(id).indexOf(sought);
  let told = "";
  let from = 0;
  for (let at = said.indexOf(sought); at !== -1; at = said.indexOf(sought, from)) {
    const end = at + name.length;
    const isWord = !isWordCharacter(text[at - 1]) && !isWordCharacter(text[end]);
    const isQuoted = QUOTES.has(text[at - 1]) && QUOTES.has(text[end]);
    const isWithinId = offset !== -1 && text.startsWith(id, at - offset);
    const isTold = !isWord || isWithinId || (mustBeQuoted && !isQuoted);
    told += text.slice(from, at) + (isTold ? text.slice(at, end) : id);
    from = end;
  }
  return told + text.slice(from);
}

export function allInCallersWords(texts: readonly string[], served: Served): readonly string[] {
  return texts.length === 0 ? texts : texts.map((text) => inCallersWords(text, served));
}

function isWordCharacter(character: string | undefined): boolean {
  return character !== undefined && WORD_CHARACTER.test(character);
}

/** Letters whose small form is longer than they are would move what follows them. */
function toComparable(text: string): string {
  const small = text.toLowerCase();
  return small.length === text.length ? small : text;
}
