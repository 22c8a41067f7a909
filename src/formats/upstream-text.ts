import { refuse } from "./upstream-error.js";

/** The text of a data URL without base64. Throws a ProviderError of status 400 for a malformed escape. */
export function decodedText(text: string, path: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refuse("must be a well-formed data URL: it holds a malformed percent escape", path);
  }
}
