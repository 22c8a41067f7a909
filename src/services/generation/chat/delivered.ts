/** Counts the tokens of an answer's text as it is delivered. */
import { countTextTokens } from "../../../lib/tokenizer.js";

/** Fewest average characters per token: dividing by it never counts too few tokens. */
const CHARS_PER_TOKEN_MIN = 2;

/** The pieces of one kind of output, and their tokens. */
export class DeliveredText {
  chars = 0;
  private readonly pieces: string[] = [];
  private countedPieces = 0;
  private countedChars = 0;
  private countedTokens = 0;

  get tokensMax(): number {
    return this.countedTokens + Math.ceil((this.chars - this.countedChars) / CHARS_PER_TOKEN_MIN);
  }

  /** Adds a string, or content parts of which some have text. */
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
