/**
 * Conversations that are kept in this browser only, for each account by itself. Bounded: the oldest go first. A browser that keeps nothing
 * (a private window, storage switched off) shows an empty history, and the playground works on.
 */
import { useCallback, useEffect, useState } from "react";
import type { Settings, Turn } from "./chat/conversation.js";

const CONVERSATIONS_MAX = 100;
const CHARACTERS_MAX = 10_000_000;

export interface Conversation {
  readonly id: string;
  readonly title: string;
  readonly at: number;
  readonly models: readonly string[];
  readonly settings: Settings;
  readonly turns: readonly Turn[];
}

export interface Summary extends Pick<Conversation, "id" | "title" | "at"> {
  readonly account: string;
  readonly characters: number;
}

const SUMMARIES = "summaries";
const CONVERSATIONS = "conversations";

let opened: Promise<IDBDatabase> | null = null;

function open(): Promise<IDBDatabase> {
  opened ??= new Promise<IDBDatabase>((resolve, reject) => {
    const request = indexedDB.open("sluice-playground", 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore(SUMMARIES, { keyPath: "id" });
      request.result.createObjectStore(CONVERSATIONS, { keyPath: "id" });
    };
    request.onsuccess = () => resolve(request.result);
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
    const transaction = (await open()).transaction([SUMMARIES, CONVERSATIONS], mode);
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
export async function listConversations(account: string): Promise<readonly Summary[]> {
  const all = (await transact<Summary[]>("readonly", (store) => store(SUMMARIES).getAll())) ?? [];
  return all.filter((summary) => summary.account === account).sort((a, b) => b.at - a.at);
}

/** Null where there is none, or it is another account's. */
export async function readConversation(account: string, id: string): Promise<Conversation | null> {
  const found = await transact<(Conversation & { readonly account: string }) | undefined>("readonly", (store) =>
    store(CONVERSATIONS).get(id),
  );
  return found && found.account === account ? found : null;
}

export async function saveConversation(account: string, conversation: Conversation): Promise<void> {
  const characters = JSON.stringify(conversation).length;
  if (characters > CHARACTERS_MAX) return;
  const { id, title, at } = conversation;
  const others = (await listConversations(account)).filter((other) => other.id !== id);
  const gone: string[] = [];
  let room = CHARACTERS_MAX - characters;
  for (const [index, other] of others.entries()) {
    room -= other.characters;
    if (room < 0 || index + 1 >= CONVERSATIONS_MAX) gone.push(other.id);
  }
  await transact("readwrite", (store) => {
    for (const old of gone) for (const name of [SUMMARIES, CONVERSATIONS]) store(name).delete(old);
    store(CONVERSATIONS).put({ ...conversation, account });
    return store(SUMMARIES).put({ id, title, at, account, characters } satisfies Summary);
  });
}

export async function deleteConversations(ids: readonly string[]): Promise<void> {
  await transact("readwrite", (store) => {
    for (const id of ids) for (const name of [SUMMARIES, CONVERSATIONS]) store(name).delete(id);
    return store(SUMMARIES).count();
  });
}

export function useHistory(account: string | null) {
  const [conversations, setConversations] = useState<readonly Summary[]>([]);
  const refresh = useCallback(async () => setConversations(account === null ? [] : await listConversations(account)), [account]);
  useEffect(() => void refresh(), [refresh]);
  const remove = async (ids: readonly string[]) => {
    await deleteConversations(ids);
    await refresh();
  };
  return { conversations, refresh, remove };
}
