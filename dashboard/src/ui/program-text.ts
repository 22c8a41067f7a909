/** Texts for programs, as people read and copy them. */

/** For a shell: nothing in it is anything but text. */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** What is no JSON, such as the beginning of one, stays as it is. */
export function indentedJson(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
