/** All that is kept of the account as one file, asked for page by page. Each page becomes text at once, which the browser may put on its disk. */
import { AccountExportDocument, type AccountExportSection } from "../../client/generated/graphql.js";
import { uncached } from "../../client/graphql.js";

/** In the order of the file. */
const SECTIONS: readonly AccountExportSection[] = [
  "PROFILE",
  "SIGN_IN_METHODS",
  "SESSIONS",
  "API_KEYS",
  "WEBHOOK_ENDPOINTS",
  "MODELS",
  "FILES",
  "UPLOADS",
  "LEDGER",
  "USAGE",
];

export interface Progress {
  readonly section: AccountExportSection;
  readonly items: number;
}

/** Rejects with what the gateway said; null when it was given up. */
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

/** A connection that drops in the middle costs nobody the whole: the page is asked for again. */
async function readPage(section: AccountExportSection, after: string | null): Promise<Page> {
  for (let attemptsLeft = 2; ; attemptsLeft -= 1) {
    const { data, error } = await uncached.query(AccountExportDocument, { section, after }).toPromise();
    if (data?.me?.export) return data.me.export;
    if (attemptsLeft === 0 || !error?.networkError) throw error ?? new Error("The gateway answered nothing.");
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}

export function saveAs(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser has taken the file by the time that the link is gone.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
