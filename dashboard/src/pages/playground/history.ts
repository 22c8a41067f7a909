/**
 * What was asked for and made, kept in this browser only, for each account and kind by itself. Bounded: the oldest go first. A browser that
 * keeps nothing (a private window, storage switched off) shows an empty history, and the playground works on.
 */
import { useCallback, useEffect, useState } from "react";
import type { HistoryContent, HistoryKind } from "./history-content.js";

/** Of each kind. */
export const ITEMS_MAX = 100;
const BYTES_MAX = 50_000_000;

export interface Summary {
  readonly id: string;
  readonly kind: HistoryKind;
  readonly account: string;
  readonly title: string;
  readonly at: number;
  readonly bytes: number;
}

export interface Item<Kind extends HistoryKind> {
  readonly id: string;
  readonly title: string;
  /** The models that were asked. */
  readonly models: readonly string[];
  readonly content: HistoryContent[Kind];
}

const SUMMARIES = "summaries";
const ITEMS = "items";
const VERSION = 2;

let opened: Promise<IDBDatabase> | null = null;

function open(): Promise<IDBDatabase> {
  opened ??= new Promise<IDBDatabase>((resolve, reject) => {
    const request = indexedDB.open("sluice-playground", VERSION);
    request.onupgradeneeded = () => {
      const database = request.result;
      for (const name of [...database.objectStoreNames]) database.deleteObjectStore(name);
      for (const name of [SUMMARIES, ITEMS]) database.createObjectStore(name, { keyPath: "id" });
    };
    request.onsuccess = () => {
      // A newer dashboard in another tab waits for this one to let go.
      request.result.onversionchange = () => {
        request.result.close();
        opened = null;
      };
      resolve(request.result);
    };
    request.onerror = () => reject(request.error);
  }).catch((error: unknown) => {
    opened = null;
    throw error;
  });
  return opened;
}

/** Runs `work` in one transaction over both stores; the last request's result, or null where the browser keeps nothing. */
async function transact<Result>(
  mode: IDBTransactionMode,
  work: (store: (name: string) => IDBObjectStore) => IDBRequest<Result>,
): Promise<Result | null> {
  try {
    const transaction = (await open()).transaction([SUMMARIES, ITEMS], mode);
    const request = work((name) => transaction.objectStore(name));
    return await new Promise<Result>((resolve, reject) => {
      transaction.oncomplete = () => resolve(request.result);
      transaction.onerror = () => reject(transaction.error);
      transaction.onabort = () => reject(transaction.error);
    });
  } catch {
    return null;
  }
}

/** Newest first. */
async function listItems(account: string, kind: HistoryKind): Promise<readonly Summary[]> {
  const all = (await transact<Summary[]>("readonly", (store) => store(SUMMARIES).getAll())) ?? [];
  return all.filter((summary) => summary.account === account && summary.kind === kind).sort((a, b) => b.at - a.at);
}

/** Null where there is none, or it is another account's or of another kind. */
export async function readItem<Kind extends HistoryKind>(account: string, kind: Kind, id: string): Promise<Item<Kind> | null> {
  const found = await transact<(Item<Kind> & Pick<Summary, "account" | "kind">) | undefined>("readonly", (store) => store(ITEMS).get(id));
  return found && found.account === account && found.kind === kind ? found : null;
}

export async function saveItem<Kind extends HistoryKind>(account: string, kind: Kind, item: Item<Kind>): Promise<void> {
  const bytes = bytesOf(item);
  if (bytes > BYTES_MAX) return;
  const { id, title } = item;
  const others = (await listItems(account, kind)).filter((other) => other.id !== id);
  const gone: string[] = [];
  let room = BYTES_MAX - bytes;
  for (const [index, other] of others.entries()) {
    room -= other.bytes;
    if (room < 0 || index + 1 >= ITEMS_MAX) gone.push(other.id);
  }
  await transact("readwrite", (store) => {
    for (const old of gone) for (const name of [SUMMARIES, ITEMS]) store(name).delete(old);
    store(ITEMS).put({ ...item, account, kind });
    return store(SUMMARIES).put({ id, kind, title, account, at: Date.now(), bytes } satisfies Summary);
  });
}

async function deleteItems(ids: readonly string[]): Promise<void> {
  await transact("readwrite", (store) => {
    for (const id of ids) for (const name of [SUMMARIES, ITEMS]) store(name).delete(id);
    return store(SUMMARIES).count();
  });
}

/** Roughly: a character counts as one. */
function bytesOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (value instanceof Blob) return value.size;
  if (typeof value !== "object" || value === null) return 8;
  return Object.entries(value).reduce((sum, [name, part]) => sum + name.length + bytesOf(part), 0);
}

let idsMade = 0;
export const newId = () => `${Date.now().toString(36)}-${(idsMade++).toString(36)}-${Math.random().toString(36).slice(2, 8)}`;

export function useHistory(account: string | null, kind: HistoryKind) {
  const [items, setItems] = useState<readonly Summary[]>([]);
  const refresh = useCallback(async () => setItems(account === null ? [] : await listItems(account, kind)), [account, kind]);
  useEffect(() => void refresh(), [refresh]);
  const remove = async (ids: readonly string[]) => {
    await deleteItems(ids);
    await refresh();
  };
  return { items, refresh, remove };
}
