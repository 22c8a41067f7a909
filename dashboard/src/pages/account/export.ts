/** Export of all account data as one file. Each page becomes a Blob at once, which the browser can move to disk. */
import { AccountExportDocument, type AccountExportSection } from "../../client/generated/graphql.js";
import { uncached } from "../../client/graphql.js";

/** In the order of the file. */
const SECTIONS: readonly AccountExportSection[] = [
  "PROFILE",
  "SIGN_IN_METHODS",
  "SESSIONS",
  "API_KEYS",
  "WEBHOOK_ENDPOINTS",
  "PRESETS",
  "VENDOR_KEYS",
  "USAGE_LIMITS",
  "TOP_UPS",
  "EARNINGS",
  "ALERTS",
  "STORED_RESPONSES",
  "CONVERSATIONS",
  "MODELS",
  "FILES",
  "UPLOADS",
  "LEDGER",
  "USAGE",
  "FAILED_REQUESTS",
];

export interface Progress {
  readonly section: AccountExportSection;
  readonly items: number;
}

/** Resolves with null when the signal aborts. Rejects with the gateway's error. */
export async function exportAccount(onProgress: (progress: Progress) => void, signal: AbortSignal): Promise<Blob | null> {
  const parts: Blob[] = [];
  const write = (text: string) => void parts.push(new Blob([text]));
  write(`{\n"exportedAt": ${JSON.stringify(new Date().toISOString())}`);
  let count = 0;
  for (const section of SECTIONS) {
    write(`,\n${JSON.stringify(section.toLowerCase())}: [`);
    let isFirst = true;
    for (let after: string | null = null; ; ) {
      const page = await readPage(section, after);
      if (signal.aborted) return null;
      const text = page.items.map((item) => JSON.stringify(item)).join(",\n");
      if (text !== "") write(`${isFirst ? "\n" : ",\n"}${text}`);
      isFirst &&= text === "";
      count += page.items.length;
      onProgress({ section, items: count });
      after = page.endCursor;
      if (after === null) break;
    }
    write("]");
  }
  write("\n}\n");
  return new Blob(parts, { type: "application/json" });
}

interface Page {
  readonly items: readonly unknown[];
  readonly endCursor: string | null;
}

/** Retries network errors, so that a dropped connection does not cost the whole export. */
async function readPage(section: AccountExportSection, after: string | null): Promise<Page> {
  for (let attemptsLeft = 2; ; attemptsLeft -= 1) {
    const { data, error } = await uncached.query(AccountExportDocument, { section, after }).toPromise();
    if (data?.me?.export) return data.me.export;
    if (attemptsLeft === 0 || !error?.networkError) throw error ?? new Error("The gateway returned no data.");
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}

export function saveAs(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // One minute is enough for the browser to start reading.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
