/** The typed key, kept only in this tab: never in a URL or in storage that other tabs share, and dropped with the tab. */
const STORED_AS = "sluice:api-key";

export function readApiKey(): string {
  return sessionStorage.getItem(STORED_AS) ?? "";
}

export function rememberApiKey(key: string): void {
  if (key === "") sessionStorage.removeItem(STORED_AS);
  else sessionStorage.setItem(STORED_AS, key);
}

/** The value of an Authorization header. Null: the session cookie authenticates, if there is one. */
export function readAuthorization(): string | null {
  const key = readApiKey();
  return key === "" ? null : `Bearer ${key}`;
}
