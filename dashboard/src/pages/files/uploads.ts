/**
 * Uploads, which continue while the user visits other pages. Listed and large files go directly to the object store, at a URL that the
 * gateway signs. Small files that only need a link go through the gateway.
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

export interface UploadOptions {
  /** Without tags the file is not listed, and its link expires. */
  readonly tags: readonly string[];
  /** Removes metadata of images, such as the location. */
  readonly isStripped: boolean;
}

export interface Upload {
  readonly key: number;
  readonly file: File;
  readonly options: UploadOptions;
  readonly state: "waiting" | "sending" | "done" | "failed";
  /** From 0 to 1, null while unknown. */
  readonly progress: number | null;
  /** Error message of a failed upload. */
  readonly problem: string | null;
  /** Id and public URL of an uploaded file. */
  readonly stored: { readonly id: string; readonly url: string } | null;
}

/** Largest file that the gateway accepts in one request. */
const SMALL_BYTES_MAX = 10 * 1024 * 1024;
const CONCURRENT_MAX = 3;
/** Cached types that a new or deleted file invalidates. */
export const OUTDATED = { additionalTypenames: ["MediaObjectConnection", "MediaQuota"] };

let uploads: readonly Upload[] = [];
const requests = new Map<number, XMLHttpRequest>();
const listeners = new Listeners();
let keys = 0;

export function useUploads(): readonly Upload[] {
  return useSyncExternalStore(listeners.add, () => uploads);
}

export function startUploads(files: readonly File[], options: UploadOptions): void {
  const added = files.map((file): Upload => {
    keys += 1;
    return { key: keys, file, options, state: "waiting", progress: null, problem: null, stored: null };
  });
  set([...uploads, ...added]);
  pump();
}

export function retryUpload(key: number): void {
  change(key, { state: "waiting", progress: null, problem: null });
  pump();
}

/** Removes an upload from the list and aborts it. */
export function removeUpload(key: number): void {
  requests.get(key)?.abort();
  set(uploads.filter((upload) => upload.key !== key));
  pump();
}

function pump(): void {
  const free = CONCURRENT_MAX - uploads.filter(({ state }) => state === "sending").length;
  for (const upload of uploads.filter(({ state }) => state === "waiting").slice(0, Math.max(free, 0))) {
    change(upload.key, { state: "sending" });
    send(upload)
      .then((stored) => change(upload.key, { state: "done", progress: 1, stored }))
      .catch((error: unknown) => change(upload.key, { state: "failed", problem: error instanceof Error ? error.message : String(error) }))
      .finally(pump);
  }
}

async function send(upload: Upload): Promise<{ readonly id: string; readonly url: string }> {
  const { file, options } = upload;
  if (options.tags.length === 0 && file.size <= SMALL_BYTES_MAX) {
    const { data, error } = await graph
      .mutation(
        FilesUploadSmallDocument,
        { input: { file, isStripped: options.isStripped } },
        // Protects from CSRF: a page of another site can send a multipart form, but not this header.
        { ...OUTDATED, fetchOptions: { headers: { "GraphQL-Preflight": "1" } } },
      )
      .toPromise();
    return data?.uploadMedia?.mediaFile ?? fail(error);
  }
  const input = { contentType: file.type || "application/octet-stream", size: file.size, name: file.name, tags: options.tags };
  const created = await graph.mutation(FilesCreateUploadDocument, { input }, OUTDATED).toPromise();
  const target = created.data?.createUpload?.upload ?? fail(created.error);
  await put(upload, target);
  const { data, error } = await graph.mutation(FilesCompleteUploadDocument, { input: { id: target.mediaObjectId } }, OUTDATED).toPromise();
  return data?.completeUpload?.mediaObject ?? fail(error);
}

type UploadTarget = NonNullable<FilesCreateUploadMutation["createUpload"]>["upload"];

/** Uses XMLHttpRequest, because `fetch` reports no upload progress. */
function put({ key, file }: Upload, { url, method, headers }: UploadTarget): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    requests.set(key, request);
    request.open(method, url);
    for (const { name, value } of headers) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded, total }) => change(key, { progress: total === 0 ? null : loaded / total });
    request.onload = () => {
      if (request.status < 300) resolve();
      else reject(new Error(messageIn(request.responseText) ?? `The storage rejected the file (HTTP ${request.status}).`));
    };
    request.onerror = () => reject(new Error("Cannot reach the storage. Check your connection, then try again."));
    request.onabort = () => reject(new Error("Upload cancelled."));
    request.onloadend = () => requests.delete(key);
    request.send(file);
  });
}

/** Message of the gateway's error envelope. Null for the XML errors of an external bucket. */
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
  throw new Error(isAway ? "Cannot reach the gateway." : (error?.graphQLErrors[0]?.message ?? "Upload failed."));
}

function change(key: number, changes: Partial<Upload>): void {
  set(uploads.map((upload) => (upload.key === key ? { ...upload, ...changes } : upload)));
}

function set(changed: readonly Upload[]): void {
  uploads = changed;
  listeners.notify();
}

/** Warns before leaving the page, which would abort the uploads. */
window.addEventListener("beforeunload", (event) => {
  if (uploads.some(({ state }) => state === "waiting" || state === "sending")) event.preventDefault();
});
