/** The key that is typed in, remembered by this tab alone: it stands in no address, in no storage that other tabs see, and goes when the tab does. */
const STORED_AS = "sluice:api-key";

export function readApiKey(): string {
  return sessionStorage.getItem(STORED_AS) ?? "";
}

export function rememberApiKey(key: string): void {
  if (key === "") sessionStorage.removeItem(STORED_AS);
  else sessionStorage.setItem(STORED_AS, key);
}

/** The value of an Authorization header; null: the session's cookie, where there is one, says who asks. */
export function readAuthorization(): string | null {
  const key = readApiKey();
  return key === "" ? null : `Bearer ${key}`;
}
