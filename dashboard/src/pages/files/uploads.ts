/**
 * What is being uploaded: it goes on while other pages are looked at. What is to be listed, and what is large, goes straight to the store
 * at an address that the gateway signs; what is small and shall only have a link goes through the gateway.
 */
import { useSyncExternalStore } from "react";
import type { CombinedError } from "urql";
import {
  FilesCompleteUploadDocument,
  FilesCreateUploadDocument,
  type FilesCreateUploadMutation,
  FilesUploadSmallDocument,
} from "../../client/generated/graphql.js";
import { graph } from "../../client/graphql.js";
import { Listeners } from "../../client/listeners.js";

export interface UploadWish {
  /** Empty: it is listed nowhere, and has a link for some days. */
  readonly tags: readonly string[];
  /** Without what a picture says of where and how it was taken. */
  readonly isStripped: boolean;
}

export interface Upload {
  readonly key: number;
  readonly file: File;
  readonly wish: UploadWish;
  readonly state: "waiting" | "sending" | "done" | "failed";
  /** Of 1; null while it cannot be told. */
  readonly progress: number | null;
  /** Why it failed. */
  readonly problem: string | null;
  /** Of a file that is there: where the dashboard shows it, and where anybody fetches it. */
  readonly stored: { readonly id: string; readonly url: string } | null;
}

/** What the gateway takes in one piece; what is larger goes to the store. */
const SMALL_BYTES_MAX = 10 * 1024 * 1024;
const AT_ONCE_MAX = 3;
/** What is outdated by a file that comes or goes. */
export const OUTDATED = { additionalTypenames: ["MediaObjectConnection", "MediaQuota"] };

let uploads: readonly Upload[] = [];
const requests = new Map<number, XMLHttpRequest>();
const listeners = new Listeners();
let keys = 0;

export function useUploads(): readonly Upload[] {
  return useSyncExternalStore(listeners.add, () => uploads);
}

export function startUploads(files: readonly File[], wish: UploadWish): void {
  const added = files.map((file): Upload => {
    keys += 1;
    return { key: keys, file, wish, state: "waiting", progress: null, problem: null, stored: null };
  });
  set([...uploads, ...added]);
  pump();
}

export function retryUpload(key: number): void {
  change(key, { state: "waiting", progress: null, problem: null });
  pump();
}

/** Takes it from the list, and ends what is still being sent of it. */
export function dropUpload(key: number): void {
  requests.get(key)?.abort();
  set(uploads.filter((upload) => upload.key !== key));
  pump();
}

function pump(): void {
  const free = AT_ONCE_MAX - uploads.filter(({ state }) => state === "sending").length;
  for (const upload of uploads.filter(({ state }) => state === "waiting").slice(0, Math.max(free, 0))) {
    change(upload.key, { state: "sending" });
    send(upload)
      .then((stored) => change(upload.key, { state: "done", progress: 1, stored }))
      .catch((error: unknown) => change(upload.key, { state: "failed", problem: error instanceof Error ? error.message : String(error) }))
      .finally(pump);
  }
}

async function send(upload: Upload): Promise<{ readonly id: string; readonly url: string }> {
  const { file, wish } = upload;
  if (wish.tags.length === 0 && file.size <= SMALL_BYTES_MAX) {
    const { data, error } = await graph
      .mutation(
        FilesUploadSmallDocument,
        { input: { file, isStripped: wish.isStripped } },
        // Forms are what other sites' pages could send, too: this header they could not.
        { ...OUTDATED, fetchOptions: { headers: { "GraphQL-Preflight": "1" } } },
      )
      .toPromise();
    return data?.uploadMedia?.mediaFile ?? fail(error);
  }
  const announced = { contentType: file.type || "application/octet-stream", size: file.size, name: file.name, tags: wish.tags };
  const created = await graph.mutation(FilesCreateUploadDocument, { input: announced }, OUTDATED).toPromise();
  const place = created.data?.createUpload?.upload ?? fail(created.error);
  await put(upload, place);
  const { data, error } = await graph.mutation(FilesCompleteUploadDocument, { input: { id: place.mediaObjectId } }, OUTDATED).toPromise();
  return data?.completeUpload?.mediaObject ?? fail(error);
}

type Place = NonNullable<FilesCreateUploadMutation["createUpload"]>["upload"];

/** `fetch` tells nothing of how much has gone. */
function put({ key, file }: Upload, { url, method, headers }: Place): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    requests.set(key, request);
    request.open(method, url);
    for (const { name, value } of headers) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded, total }) => change(key, { progress: total === 0 ? null : loaded / total });
    request.onload = () => {
      if (request.status < 300) resolve();
      else reject(new Error(messageIn(request.responseText) ?? `The store has refused it (HTTP ${request.status}).`));
    };
    request.onerror = () => reject(new Error("The store could not be reached. Look at your connection, then try again."));
    request.onabort = () => reject(new Error("It was cancelled."));
    request.onloadend = () => requests.delete(key);
    request.send(file);
  });
}

/** In the gateway's envelope; a bucket has one of its own, which is for programs. */
function messageIn(text: string): string | null {
  try {
    const { error } = JSON.parse(text) as { readonly error?: { readonly message?: unknown } };
    return typeof error?.message === "string" ? error.message : null;
  } catch {
    return null;
  }
}

function fail(error: CombinedError | undefined): never {
  const isAway = error?.networkError !== undefined;
  throw new Error(isAway ? "The gateway could not be reached." : (error?.graphQLErrors[0]?.message ?? "It was not stored."));
}

function change(key: number, changes: Partial<Upload>): void {
  set(uploads.map((upload) => (upload.key === key ? { ...upload, ...changes } : upload)));
}

function set(changed: readonly Upload[]): void {
  uploads = changed;
  listeners.notify();
}

/** Leaving the dashboard would end what is being sent. */
window.addEventListener("beforeunload", (event) => {
  if (uploads.some(({ state }) => state === "waiting" || state === "sending")) event.preventDefault();
});
