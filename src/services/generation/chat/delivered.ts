/** Text of an answer as it is delivered, and how many tokens it makes. */
import { countTextTokens } from "../../../lib/tokenizer.js";

/** A token of any text has at least about this many characters on average: dividing by it never counts too few. */
const CHARS_PER_TOKEN_MIN = 2;

/** The pieces of one kind of output, and how many tokens they make. */
export class DeliveredText {
  chars = 0;
  private readonly pieces: string[] = [];
  private countedPieces = 0;
  private countedChars = 0;
  private countedTokens = 0;

  get tokensMax(): number {
    return this.countedTokens + Math.ceil((this.chars - this.countedChars) / CHARS_PER_TOKEN_MIN);
  }

  /** Takes a string, or content parts of which some hold text. */
  add(value: unknown): void {
    if (typeof value === "string" && value !== "") {
      this.pieces.push(value);
      this.chars += value.length;
    } else if (Array.isArray(value)) {
      for (const part of value) if (part && typeof part === "object" && "text" in part) this.add(part.text);
    }
  }

  countGrowth(): number {
    if (this.countedPieces < this.pieces.length) this.countedTokens += countTextTokens(this.pieces.slice(this.countedPieces).join(""));
    this.countedPieces = this.pieces.length;
    this.countedChars = this.chars;
    return this.countedTokens;
  }

  countWhole(): number {
    return this.chars === 0 ? 0 : countTextTokens(this.pieces.join(""));
  }
}
