/** Tells, piece by piece, when the JSON object of a call's arguments is complete. Linear; malformed JSON may never end. */

export class ObjectEnd {
  private depth = 0;
  private isInText = false;
  private isEscaped = false;
  isComplete = false;

  read(piece: string): void {
    for (let at = 0; at < piece.length && !this.isComplete; at += 1) {
      const mark = piece.charCodeAt(at);
      if (this.isInText) this.readText(mark);
      else if (mark === QUOTE) this.isInText = true;
      else if (mark === OPEN_BRACE || mark === OPEN_BRACKET) this.depth += 1;
      else if (mark === CLOSE_BRACE || mark === CLOSE_BRACKET) {
        this.depth -= 1;
        this.isComplete = this.depth <= 0;
      }
    }
  }

  private readText(mark: number): void {
    if (this.isEscaped) this.isEscaped = false;
    else if (mark === BACKSLASH) this.isEscaped = true;
    else if (mark === QUOTE) this.isInText = false;
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
