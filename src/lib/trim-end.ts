/** `"a//"` without trailing `"/"` is `"a"`. A pattern such as `/\/+$/` says the same, and takes quadratic time over a long run that is not the last. */
export function withoutTrailing(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}
