/**
 * A text that grows, cut into blocks of Markdown at blank lines outside of code. What is before the last block never changes, so that of a
 * long answer only its end is read and drawn anew.
 */
export class GrowingText {
  #blocks: readonly string[] = [];
  #tail = "";
  /** Up to where the tail's lines have been looked at. */
  #seen = 0;
  #fence: string | null = null;
  #length = 0;

  get blocks(): readonly string[] {
    return this.#blocks;
  }

  get tail(): string {
    return this.#tail;
  }

  get length(): number {
    return this.#length;
  }

  get text(): string {
    return this.#blocks.join("") + this.#tail;
  }

  append(piece: string): void {
    this.#length += piece.length;
    this.#tail += piece;
    const whole: string[] = [];
    for (let end = this.#tail.indexOf("\n", this.#seen); end !== -1; end = this.#tail.indexOf("\n", this.#seen)) {
      const line = this.#tail.slice(this.#seen, end);
      this.#seen = end + 1;
      this.#turnFence(line);
      if (this.#fence !== null || line.trim() !== "") continue;
      whole.push(this.#tail.slice(0, this.#seen));
      this.#tail = this.#tail.slice(this.#seen);
      this.#seen = 0;
    }
    if (whole.length > 0) this.#blocks = [...this.#blocks, ...whole];
  }

  #turnFence(line: string): void {
    const [, mark = ""] = /^ {0,3}(`{3,}|~{3,})/.exec(line) ?? [];
    if (mark === "") return;
    if (this.#fence === null) this.#fence = mark;
    else if (mark.startsWith(this.#fence) && line.trim() === mark) this.#fence = null;
  }
}

export function blocksOf(text: string): readonly string[] {
  const growing = new GrowingText();
  growing.append(text);
  return growing.tail === "" ? growing.blocks : [...growing.blocks, growing.tail];
}
