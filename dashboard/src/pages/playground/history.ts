/**
 * History of generations in this browser's IndexedDB, by account and type. The oldest items are deleted first. Without storage, as in some
 * private windows, the history is empty and the playground still works.
 */
import { useCallback, useEffect, useState } from "react";
import type { HistoryContent, HistoryKind } from "./history-content.js";

/** Limit per account and type. */
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
      // A newer version of the dashboard in another tab cannot upgrade the database before this connection closes.
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

/** Runs `work` in one transaction over both stores. Resolves with the result of its request, or null without storage. */
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

async function listItems(account: string, kind: HistoryKind): Promise<readonly Summary[]> {
  const all = (await transact<Summary[]>("readonly", (store) => store(SUMMARIES).getAll())) ?? [];
  return all.filter((summary) => summary.account === account && summary.kind === kind).sort((a, b) => b.at - a.at);
}

/** Null when the item does not exist or belongs to another account or type. */
export async function readItem<Kind extends HistoryKind>(account: string, kind: Kind, id: string): Promise<Item<Kind> | null> {
  const found = await transact<(Item<Kind> & Pick<Summary, "account" | "kind">) | undefined>("readonly", (store) => store(ITEMS).get(id));
  return found && found.account === account && found.kind === kind ? found : null;
}

export async function saveItem<Kind extends HistoryKind>(account: string, kind: Kind, item: Item<Kind>): Promise<void> {
  const bytes = bytesOf(item);
  if (bytes > BYTES_MAX) return;
  const { id, title } = item;
  const others = (await listItems(account, kind)).filter((other) => other.id !== id);
  const evicted: string[] = [];
  let room = BYTES_MAX - bytes;
  for (const [index, other] of others.entries()) {
    room -= other.bytes;
    if (room < 0 || index + 1 >= ITEMS_MAX) evicted.push(other.id);
  }
  await transact("readwrite", (store) => {
    for (const other of evicted) for (const name of [SUMMARIES, ITEMS]) store(name).delete(other);
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

/** Approximate: counts a character as one byte. */
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
