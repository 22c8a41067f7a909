export function quoteStart(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax - 1)}…` : text;
}
